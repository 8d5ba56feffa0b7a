/* cli_numpy.h - files of any kind: messages, and NumPy arrays and archives instead of them. */
#ifndef ONX_CLI_NUMPY_H
#define ONX_CLI_NUMPY_H

#include "cli.h"

/* Does the name end in .npy or .npz? */
bool cli_is_numpy(const char *path);
/* Loads a file: *kind is that of --as; without --as a model, or a tensor for .npy, a graph of initializers for .npz, or
 * the kind that the contents of a binary file show. Otherwise like cli_load_as. */
onx_status cli_load_any(cli_call *call, const char *path, onx_format format, onx_kind *kind, onx_doc **out);
/* Writes a tensor or, for .npz, a graph that has only initializers, as a NumPy file. */
onx_status cli_save_numpy(cli_call *call, onx_doc *doc, onx_kind kind, const char *path);

#endif
