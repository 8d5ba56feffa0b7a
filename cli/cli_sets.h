/* cli_sets.h - runs a model on many sets of inputs in a folder, which several ranks can share. */
#ifndef ONX_CLI_SETS_H
#define ONX_CLI_SETS_H

#include "cli_outputs.h"

/* clang-format off */
#define CLI_OPTIONS_SETS \
    { "batches", 0, "DIR", NULL, "run the model on each set of inputs in this folder: an .npz, a test_data_set folder, or the only input as .npy, .pb, .json or an image; outputs go to a folder of the same name in that of --output" }, \
    { "ranks", 0, NULL, NULL, "be one of the ranks that mpirun starts, each of which runs its share of --batches" }
/* clang-format on */

/* Checks the combination of options with --batches; errors are printed. */
bool cli_sets_options(const cli_call *call);
/* Runs this rank's sets of --batches, in order of name, and prints or writes the outputs. */
onx_status cli_sets_run(cli_call *call, onx_doc *doc, onx_session *s, const onx_run_options *limits, cli_outputs *o);

#endif
