/* cli_numpy.h - files of any kind: messages, and NumPy arrays and archives in their place. */
#ifndef ONX_CLI_NUMPY_H
#define ONX_CLI_NUMPY_H

#include "cli.h"

/* Does the name end in .npy or .npz? */
bool cli_is_numpy(const char *path);
/* What a file holds when the command line does not say it: *kind is what --as says, else a model, a tensor for .npy, a
 * graph of initializers for .npz, or what the content of a binary file shows. Then as cli_load_as. */
onx_status cli_load_any(cli_call *call, const char *path, onx_format format, onx_kind *kind, onx_doc **out);
/* Writes a tensor, or for .npz also a graph that has only initializers, as a NumPy file. */
onx_status cli_save_numpy(cli_call *call, onx_doc *doc, onx_kind kind, const char *path);

#endif
