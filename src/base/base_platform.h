/* base_platform.h - what systems do differently: the one place that asks which system this is. Everything else of the
 * library is written for POSIX, and for what is here. */
#ifndef ONXI_BASE_PLATFORM_H
#define ONXI_BASE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files ---- */

/* A folder that is only walked through need not be readable, where a system can open it so. */
int onxi_platform_folder_flags(void);
/* Lets the system walk a path below a folder, through no link. -1 with errno set; ENOSYS: it does not know how. */
int onxi_platform_open_beneath(int dir, const char *path, int flags);
/* A file without a name in that folder, which nothing can leave behind; -1 where there is no such thing. */
int onxi_platform_open_nameless(int dir, int flags, unsigned mode);
/* A path that leads to an open file or folder; false where there is none. */
bool onxi_platform_path_of(int fd, char *path, size_t size);
/* The same open file by another number, which no program that is started gets. */
int onxi_platform_same_file(int fd);
/* Where the next bytes of a file are that are not a hole, at or after `at`; -1 with ENXIO: nowhere. Where the system
 * does not tell, everything is taken for data. */
int64_t onxi_platform_data_after(int fd, int64_t at);

/* Do files outlast the process? Those of a module of WebAssembly, which is fetched anew, do not. */
enum {
#ifdef __wasm__
    ONXI_PLATFORM_KEEPS = 0
#else
    ONXI_PLATFORM_KEEPS = 1
#endif
};

/* Is there room for kernels that many networks do without? A module of WebAssembly is fetched by everybody. */
#ifdef __wasm__
#define ONXI_PLATFORM_ROOMY 0
#else
#define ONXI_PLATFORM_ROOMY 1
#endif

/* ---- memory ---- */

/* Does memory come in pages that are filled when they are touched? That of WebAssembly is there as a whole. */
enum {
#ifdef __wasm__
    ONXI_PLATFORM_PAGES = 0
#else
    ONXI_PLATFORM_PAGES = 1
#endif
};

/* Is a large block best taken as a mapping of its own? Not where a sanitizer watches the C library, nor where
 * mappings are only imitated. */
bool onxi_platform_has_mappings(void);
/* Gives a mapping another size, at another place if need be; NULL when that cannot be done. */
void *onxi_platform_remap(void *mapping, size_t old_size, size_t new_size);
/* The system may take the pages of a mapping until they are written to again, and they then hold whatever. False: it
 * cannot be told so. */
bool onxi_platform_lend(void *mapping, size_t size);
/* Advice, which a system may ignore: use huge pages; this is read once, from front to back; this is not needed again.
 */
void onxi_platform_advise_huge(void *ptr, size_t size);
void onxi_platform_advise_sequential(void *ptr, size_t size);
void onxi_platform_advise_unneeded(void *ptr, size_t size);

/* ---- random numbers ---- */

/* False when there are none, or, unless it may `wait`, none yet. */
bool onxi_platform_random(void *out, size_t size, bool wait);
/* 16 bytes that the process was started with and no other process knows, or NULL. */
const void *onxi_platform_seed(void);

/* ---- processors ---- */

/* That this process may run on, at least 1. */
unsigned onxi_platform_processors(void);
/* What tells processors apart that run at other speeds: the model that the system says, or at least the architecture.
 */
void onxi_platform_processor_model(char *out, size_t size);
/* Tells a processor that this thread is only waiting. */
void onxi_platform_pause(void);
/* Has this thread lost its processor to another one since *seen was last filled, other than by waiting for something?
 * True where the system does not tell. */
bool onxi_platform_preempted(uint64_t *seen);
/* Asks for the tile registers of AMX, once for a process: they are kept for programs that have asked. */
bool onxi_platform_permit_tiles(void);

/* ---- shared libraries ---- */

/* NULL when it cannot be loaded, and onxi_platform_library_error says why. `name` is that of Linux (libx.so.1), or a
 * path. */
void *onxi_platform_library_open(const char *name, bool all_now);
/* As above, for one that is installed with the file that the code at this address was loaded from: in a folder that is
 * given as seen from that of the file. */
void *onxi_platform_library_open_beside(const void *address, const char *folder, const char *name);
void *onxi_platform_library_find(void *library, const char *symbol);
void onxi_platform_library_close(void *library);
const char *onxi_platform_library_error(void);
/* The library that this address is in is never unloaded; its symbols are shown to what is loaded later. */
void onxi_platform_library_keep(const void *address);
void onxi_platform_library_show(const void *address);

#endif
