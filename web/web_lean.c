/* web_lean.c - the module for sessions leaves some parts out, so that a page that runs a network fetches less:
 * gradients (here), and the kernels of ai.onnx.contrib with its tokenizers and the searches of com.microsoft
 * (web/CMakeLists.txt). web_session.c recognises models that need them; these get a session of the program's module. */
#include "base/base.h"

#include <onx/grad.h>

onx_status onx_grad_expand(onx_ctx *cx, onx_doc *doc)
{
    (void)doc;
    return onxi_fail(cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the module for sessions computes no gradients");
}
