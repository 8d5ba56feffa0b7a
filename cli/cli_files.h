/* cli_files.h - files and folders that are searched for files. */
#ifndef ONX_CLI_FILES_H
#define ONX_CLI_FILES_H

#include "cli.h"

/* Calls `found` for the file, or for every file of the folder and of folders in it that `wanted` accepts by its name,
 * in order of name. Hidden entries are left out, links to folders are not followed. False, with the error printed, when
 * a folder could not be read to its end; a path that is no folder is always found. */
bool cli_each_file(const cli_call *call, const char *path, bool (*wanted)(const char *name),
                   void (*found)(void *user, const char *path), void *user);

/* "DIR/NAME" in memory that the caller frees; NULL, said, when out of memory. */
char *cli_join(const cli_call *call, const char *dir, const char *name);
bool cli_is_folder(const char *path);

#endif
