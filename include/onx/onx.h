/* onx.h - everything that programs need of the library. Three headers are not included, because docs/abi.md promises
 * stability for everything that is: onx/kernel.h and onx/plugin.h, for custom kernels and operators, may change with a
 * minor release, and onx/ffi.h is for other languages. */
#ifndef ONX_ONX_H
#define ONX_ONX_H

#include <onx/base.h>
#include <onx/check.h>
#include <onx/dlpack.h>
#include <onx/generate.h>
#include <onx/grad.h>
#include <onx/infer.h>
#include <onx/io.h>
#include <onx/ir.h>
#include <onx/layout.h>
#include <onx/npy.h>
#include <onx/op.h>
#include <onx/run.h>
#include <onx/shard.h>
#include <onx/tensor.h>
#include <onx/text.h>
#include <onx/tokenizer.h>
#include <onx/train.h>
#include <onx/trainable.h>
#include <onx/transform.h>
#include <onx/value.h>

#endif
