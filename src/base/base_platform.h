/* base_platform.h - differences between operating systems: the only place that asks which system this is. The rest of
 * the library is written for POSIX and for the functions declared here. */
#ifndef ONXI_BASE_PLATFORM_H
#define ONXI_BASE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files ---- */

/* The flags that open a folder for path lookup only, which needs no read permission on systems that support this. */
int onxi_platform_folder_flags(void);
/* Lets the kernel resolve a path below a folder, refusing links. -1 with errno set; ENOSYS if the system cannot do
 * this. */
int onxi_platform_open_beneath(int dir, const char *path, int flags);
/* An unnamed file in that folder, which cannot be left behind; -1 if unsupported. */
int onxi_platform_open_nameless(int dir, int flags, unsigned mode);
/* A path that leads to an open file or folder; false if there is none. */
bool onxi_platform_path_of(int fd, char *path, size_t size);
/* A duplicate of the descriptor that is closed when a program is executed. */
int onxi_platform_same_file(int fd);
/* The offset of the next data (not a hole) at or after `at`; -1 with ENXIO if there is none. Systems that cannot tell
 * treat everything as data. */
int64_t onxi_platform_data_after(int fd, int64_t at);

/* Do files outlive the process? The files of a WebAssembly module do not. */
enum {
#ifdef __wasm__
    ONXI_PLATFORM_KEEPS = 0
#else
    ONXI_PLATFORM_KEEPS = 1
#endif
};

/* Is code size unimportant, so that kernels that few networks need can be included? A WebAssembly module is downloaded
 * by every user. */
#ifdef __wasm__
#define ONXI_PLATFORM_ROOMY 0
#else
#define ONXI_PLATFORM_ROOMY 1
#endif

/* Is the library compiled with AddressSanitizer or with ThreadSanitizer? gcc defines names, clang has features. */
#if defined(__has_feature)
#define ONXI_PLATFORM_ASAN (__has_feature(address_sanitizer))
#define ONXI_PLATFORM_TSAN (__has_feature(thread_sanitizer))
#else
#ifdef __SANITIZE_ADDRESS__
#define ONXI_PLATFORM_ASAN 1
#else
#define ONXI_PLATFORM_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define ONXI_PLATFORM_TSAN 1
#else
#define ONXI_PLATFORM_TSAN 0
#endif
#endif

/* ---- memory ---- */

/* Does memory consist of pages that are allocated on first access? WebAssembly memory does not. */
enum {
#ifdef __wasm__
    ONXI_PLATFORM_PAGES = 0
#else
    ONXI_PLATFORM_PAGES = 1
#endif
};

/* Should a large block be a mapping of its own? Not if a sanitizer watches the C library, nor if mappings are only
 * emulated. */
bool onxi_platform_has_mappings(void);
/* Resizes a mapping, moving it if necessary; NULL if this is not possible. */
void *onxi_platform_remap(void *mapping, size_t old_size, size_t new_size);
/* Allows the system to reclaim the pages of a mapping until they are written again; their contents are then undefined.
 * False if the system does not support this. */
bool onxi_platform_lend(void *mapping, size_t size);
/* Writes 0 to the first byte of a page that was never touched. Returns how long this takes, in nanoseconds of CPU time
 * of this thread. */
uint64_t onxi_platform_touch(void *page);
/* Advice that a system may ignore: use huge pages; use small pages; the bytes are read once, sequentially; the bytes
 * are not needed again. */
void onxi_platform_advise_huge(void *ptr, size_t size);
void onxi_platform_advise_small(void *ptr, size_t size);
void onxi_platform_advise_sequential(void *ptr, size_t size);
void onxi_platform_advise_unneeded(void *ptr, size_t size);

/* ---- random numbers ---- */

/* False if no random numbers are available or, unless the call may `wait`, not yet. */
bool onxi_platform_random(void *out, size_t size, bool wait);
/* 16 random bytes that the system gave this process when it started, or NULL. */
const void *onxi_platform_seed(void);

/* ---- processors ---- */

/* The number of processors that this process may run on, at least 1. */
unsigned onxi_platform_processors(void);
/* A text that differs between processors of different speed: the model name from the system, or at least the
 * architecture. */
void onxi_platform_processor_model(char *out, size_t size);
/* Tells the processor that this thread is spinning. */
void onxi_platform_pause(void);
/* Was this thread preempted since *seen was last filled, other than by blocking? True if the system cannot tell. */
bool onxi_platform_preempted(uint64_t *seen);
/* Requests the use of AMX tile registers, once per process: Linux saves them only for processes that have asked. */
bool onxi_platform_permit_tiles(void);

/* ---- shared libraries ---- */

/* Loads a library; NULL on failure, with the reason from onxi_platform_library_error. `name` is the Linux name
 * (libx.so.1) or a path. */
void *onxi_platform_library_open(const char *name, bool all_now);
/* The same for a library that is installed with the file that contains the code at this address: `folder` is relative
 * to the folder of that file. */
void *onxi_platform_library_open_beside(const void *address, const char *folder, const char *name);
void *onxi_platform_library_find(void *library, const char *symbol);
void onxi_platform_library_close(void *library);
const char *onxi_platform_library_error(void);
/* Pins the library that contains this address, so that it is never unloaded, and makes its symbols visible to libraries
 * that are loaded later. */
void onxi_platform_library_keep(const void *address);
void onxi_platform_library_show(const void *address);

#endif
