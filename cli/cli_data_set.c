/* cli_data_set.c - folders of test data in the layout of the ONNX backend tests. */
#include "cli_inputs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

static onx_status at_fault(cli_fault *fault, onx_status status, const char *format, ...) ONX_PRINTF(3, 4);
static onx_status at_fault(cli_fault *fault, onx_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return status;
}

/* "DIR/input_3.pb", or .npy if only that exists; NULL when out of memory. */
static char *numbered(const char *dir, const char *what, uint32_t index, bool *there)
{
    static const char *const endings[] = { "pb", "npy" };
    struct stat st;
    const size_t n = strlen(dir), room = n + 64;
    char *path = malloc(room);
    *there = false;
    for (size_t i = 0; path && i < sizeof endings / sizeof *endings && !*there; i++) {
        snprintf(path, room, "%s%s%s_%u.%s", dir, n && dir[n - 1] == '/' ? "" : "/", what, index, endings[i]);
        *there = stat(path, &st) == 0;
    }
    return path;
}

static bool count_files(const char *dir, const char *what, uint32_t *count)
{
    for (*count = 0;; ++*count) {
        bool there;
        char *path = numbered(dir, what, *count, &there);
        free(path);
        if (!path || !there)
            return path != NULL;
    }
}

/* Test data from before TensorProto had bfloat16 stores it as uint16. */
static void retype(const onx_type *type, onx_value *v)
{
    if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type->elem_type == ONX_BFLOAT16 &&
        v->dtype == ONX_UINT16)
        v->dtype = ONX_BFLOAT16;
}

/* The next input from `from` on that a file belongs to: any, or one without an initializer. */
static uint32_t next_port(const onx_session *s, uint32_t from, bool all)
{
    const uint32_t count = onx_session_input_count(s);
    while (from < count && !all && !onx_session_input(s, from).required)
        from++;
    return from;
}

/* There is a file for each input or, if there are fewer files, for each input without an initializer. */
static bool is_for_all(const onx_session *s, uint32_t files)
{
    uint32_t required = 0;
    for (uint32_t i = 0; i < onx_session_input_count(s); i++)
        required += onx_session_input(s, i).required;
    return files > required;
}

onx_status cli_data_set(cli_call *call, const onx_session *s, const char *dir, bool outputs, onx_value **values,
                        uint32_t *count, cli_fault *fault)
{
    const char *what = outputs ? "output" : "input";
    const uint32_t room = outputs ? onx_session_output_count(s) : onx_session_input_count(s);
    uint32_t at = 0;
    *fault = (cli_fault){ 0 };
    if (!count_files(dir, what, count))
        return at_fault(fault, ONX_E_MEMORY, "out of memory");
    const bool all = outputs || is_for_all(s, *count);
    for (uint32_t i = 0; i < *count; i++, at++) {
        bool there;
        onx_value *value;
        free(fault->path);
        if (!(fault->path = numbered(dir, what, i, &there)))
            return at_fault(fault, ONX_E_MEMORY, "out of memory");
        at = next_port(s, at, all);
        if (at >= room)
            return at_fault(fault, ONX_E_INVALID, "the model has only %u %ss", room, what);
        const onx_session_port port = outputs ? onx_session_output(s, at) : onx_session_input(s, at);
        onx_status status = cli_value_load(call, fault->path, port.type, port.name, &value);
        if (status != ONX_OK)
            return at_fault(fault, status, "cannot be read");
        retype(port.type, value);
        onx_value_free(values[at]);
        values[at] = value;
    }
    return ONX_OK;
}
