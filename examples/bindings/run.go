// Runs a model on a picture with vertical stripes: run MODEL
package main

/*
#include <stdlib.h>
#include <onx/onx.h>

// Go passes no pointers to its own memory inside of structs, so elements lie in C's memory here.
static onx_value *wrap(onx_ctx *cx, float *data, uint64_t count, uint32_t rank, const int64_t *dims)
{
    const onx_memory memory = { .dtype = ONX_FLOAT, .rank = rank, .dims = dims, .data = data, .size = 4 * count };
    onx_value *value;
    return onx_value_wrap(cx, &memory, &value) == ONX_OK ? value : NULL;
}
static onx_status run(onx_session *session, onx_ctx *cx, onx_value *in, onx_value *out)
{
    const onx_value *inputs[] = { in };
    onx_value *outputs[] = { out };
    return onx_session_run(session, cx, inputs, outputs);
}
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func check(cx *C.onx_ctx, status C.onx_status) {
	if status == C.ONX_OK {
		return
	}
	var text [1000]C.char
	C.onx_diag_format(C.onx_diag_get(cx, 0), &text[0], C.size_t(len(text)))
	fmt.Fprintln(os.Stderr, C.GoString(&text[0]))
	os.Exit(1)
}

func tensor(cx *C.onx_ctx, data *C.float, dims ...C.int64_t) *C.onx_value {
	count := C.uint64_t(1)
	for _, dim := range dims {
		count *= C.uint64_t(dim)
	}
	return C.wrap(cx, data, count, C.uint32_t(len(dims)), &dims[0])
}

func main() {
	cx := C.onx_ctx_new(nil)
	defer C.onx_ctx_free(cx)
	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	var session *C.onx_session
	check(cx, C.onx_session_load(cx, path, nil, nil, &session))
	defer C.onx_session_free(session)
	pixels := (*C.float)(C.calloc(64, 4))
	defer C.free(unsafe.Pointer(pixels))
	scores := (*C.float)(C.calloc(4, 4))
	defer C.free(unsafe.Pointer(scores))
	for i := range unsafe.Slice(pixels, 64) {
		if i%8%3 == 1 {
			unsafe.Slice(pixels, 64)[i] = 1
		}
	}
	x, y := tensor(cx, pixels, 1, 1, 8, 8), tensor(cx, scores, 1, 4)
	defer C.onx_value_free(x)
	defer C.onx_value_free(y)
	check(cx, C.run(session, cx, x, y))
	for _, score := range unsafe.Slice(scores, 4) {
		fmt.Printf("%.3f\n", float32(score))
	}
}
