/* cli_files.h - searches folders for files. */
#ifndef ONX_CLI_FILES_H
#define ONX_CLI_FILES_H

#include "cli.h"

/* Calls `found` for the file or, if the path is a folder, for every file in it and its subfolders whose name `wanted`
 * accepts, in order of name. Hidden entries are skipped, links to folders are not followed. False, with the error
 * printed, if a folder could not be read completely; a path that is not a folder is always found. */
bool cli_each_file(const cli_call *call, const char *path, bool (*wanted)(const char *name),
                   void (*found)(void *user, const char *path), void *user);

/* "DIR/NAME" in memory that the caller frees; NULL, after an error message, when out of memory. */
char *cli_join(const cli_call *call, const char *dir, const char *name);
bool cli_is_folder(const char *path);

#endif
