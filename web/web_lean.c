/* web_lean.c - parts that the module for sessions leaves out, so that a page that runs a network loads less: gradients
 * (here), and the kernels of ai.onnx.contrib with its tokenizers and the searches of com.microsoft
 * (web/CMakeLists.txt). web_session.c recognizes models that need them; these run in the program's module. */
#include "base/base.h"

#include <onx/grad.h>

onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc)
{
    (void)doc;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the module for sessions computes no gradients");
}
