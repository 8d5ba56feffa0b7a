/* web_lean.c - what the module for sessions does without, so that a page that runs a network has less to fetch: gradients
 * (here), and the kernels of ai.onnx.contrib with its tokenizers (web/CMakeLists.txt). web_session.c tells which models
 * need them, and those get a session of the program's module. */
#include "base/base.h"

#include <onx/grad.h>

onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc)
{
    (void)doc;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the module for sessions computes no gradients");
}
