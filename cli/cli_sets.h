/* cli_sets.h - one model on many sets of inputs: those of a folder, shared by ranks where there are several. */
#ifndef ONX_CLI_SETS_H
#define ONX_CLI_SETS_H

#include "cli_outputs.h"

/* clang-format off */
#define CLI_OPTIONS_SETS \
    { "batches", 0, "DIR", NULL, "run the model on each set of inputs in this folder: an .npz, a test_data_set folder, or the only input as .npy, .pb, .json or an image; outputs go to a folder of the same name in that of --output" }, \
    { "ranks", 0, NULL, NULL, "be one of the ranks that mpirun starts, each of which runs its share of --batches" }
/* clang-format on */

/* Whether options that go with --batches fit each other; errors are printed. */
bool cli_sets_options(const cli_call *call);
/* Runs the sets of --batches that are this rank's, in order of name, and prints or writes what comes out. */
onx_status cli_sets_run(cli_call *call, onx_doc *doc, onx_session *s, const onx_run_options *limits, cli_outputs *o);

#endif
