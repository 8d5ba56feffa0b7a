/* ir_field.c - exported functions for the inline functions and macros of the headers: strings, and fields by name. */
#include "ir/ir.h"

#include <onx/ffi.h>

_Static_assert((int)ONX_FIELD_FLOAT == (int)ONXI_FLOAT && (int)ONX_FIELD_ENUM == (int)ONXI_ENUM &&
                   (int)ONX_FIELD_MESSAGE == (int)ONXI_MESSAGE,
               "the types of fields are numbered alike");

/* ---- inline functions ---- */

onx_str onx_ffi_str_of(const char *text)
{
    return onx_str_of(text);
}

onx_str onx_ffi_str_make(const char *ptr, size_t len)
{
    return onx_str_make(ptr, len);
}

bool onx_ffi_str_equal(onx_str a, onx_str b)
{
    return (a.ptr || !a.len) && (b.ptr || !b.len) && onx_str_equal(a, b);
}

bool onx_ffi_str_is(onx_str a, const char *text)
{
    return text && onx_ffi_str_equal(a, onx_str_of(text));
}

onx_str onx_ffi_view(onx_bytes bytes)
{
    return onx_view(bytes);
}

onx_model *onx_ffi_doc_model(const onx_doc *doc)
{
    return onx_doc_model(doc);
}

const onx_node_extra *onx_ffi_node_more(const onx_node *node)
{
    return onx_node_more(node);
}

const onx_attribute_extra *onx_ffi_attribute_more(const onx_attribute *a)
{
    return onx_attribute_more(a);
}

/* ---- reading fields ---- */

static const onxi_field *find_field(onx_kind kind, const char *name)
{
    const onxi_message_table *table = onxi_is_kind(kind) ? onxi_messages[kind] : NULL;
    for (uint32_t i = 0; table && name && i < table->field_count; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return &table->fields[i];
    return NULL;
}

uint64_t onx_field_count(onx_kind kind, const void *message, const char *field)
{
    const onxi_field *f = message ? find_field(kind, field) : NULL;
    return f ? onxi_field_count(onxi_messages[kind], f, message) : 0;
}

/* The element of a field whose type is in a range of types; NULL if it is absent. */
static const char *element(onx_kind kind, const void *message, const char *field, uint64_t index,
                           const onxi_field **f_out)
{
    const onxi_field *f = message ? find_field(kind, field) : NULL;
    if (!f || index >= onxi_field_count(onxi_messages[kind], f, message))
        return NULL;
    const onxi_place place = onxi_field_place(onxi_messages[kind], f, message);
    const char *at = place.value;
    *f_out = f;
    if (at && f->flags & ONXI_REPEATED) {
        memcpy(&at, place.value, sizeof at);
        at = at ? at + index * onxi_field_size(f) : NULL;
    }
    return at;
}

bool onx_field_int(onx_kind kind, const void *message, const char *field, uint64_t index, int64_t *out)
{
    const onxi_field *f;
    const char *at = out ? element(kind, message, field, index, &f) : NULL;
    int32_t small;
    if (!at || f->type < ONXI_INT32 || f->type > ONXI_ENUM)
        return false;
    if (onxi_field_size(f) == sizeof small) {
        memcpy(&small, at, sizeof small);
        *out = small;
    } else {
        memcpy(out, at, sizeof *out);
    }
    return true;
}

bool onx_field_float(onx_kind kind, const void *message, const char *field, uint64_t index, double *out)
{
    const onxi_field *f;
    const char *at = out ? element(kind, message, field, index, &f) : NULL;
    float single;
    if (!at || f->type > ONXI_DOUBLE)
        return false;
    if (f->type == ONXI_FLOAT) {
        memcpy(&single, at, sizeof single);
        *out = (double)single;
    } else {
        memcpy(out, at, sizeof *out);
    }
    return true;
}

bool onx_field_text(onx_kind kind, const void *message, const char *field, uint64_t index, onx_str *out)
{
    const onxi_field *f;
    const char *at = out ? element(kind, message, field, index, &f) : NULL;
    onx_bytes bytes;
    if (!at || (f->type != ONXI_STRING && f->type != ONXI_BYTES))
        return false;
    memcpy(&bytes, at, sizeof bytes);
    *out = onx_view(bytes);
    return true;
}

void *onx_field_message(onx_kind kind, const void *message, const char *field, uint64_t index, onx_kind *kind_out)
{
    const onxi_field *f;
    const char *at = element(kind, message, field, index, &f);
    void *found;
    if (!at || f->type != ONXI_MESSAGE)
        return NULL;
    memcpy(&found, at, sizeof found);
    if (kind_out)
        *kind_out = (onx_kind)f->message->kind;
    return found;
}

/* ---- writing fields ---- */

static onx_status append(onx_arena *arena, const onxi_field *f, onxi_place place, const void *value)
{
    const bool wide = (f->flags & ONXI_WIDE) != 0;
    uint64_t count = wide ? *(const uint64_t *)place.count : *(const uint32_t *)place.count;
    if (f->flags & ONXI_BORROW || count >= UINT32_MAX)
        return onxi_fail(arena->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "nothing can be appended to %s", f->name);
    uint32_t n = (uint32_t)count;
    void *list;
    memcpy(&list, place.value, sizeof list);
    void *slot = onx_list_insert(arena, &list, &n, n, onxi_field_size(f));
    if (!slot)
        return ONX_E_MEMORY;
    memcpy(slot, value, onxi_field_size(f));
    memcpy(place.value, &list, sizeof list);
    if (wide)
        *(uint64_t *)place.count = n;
    else
        *(uint32_t *)place.count = n;
    return ONX_OK;
}

/* `value` points to the bytes of one element. */
static onx_status store(onx_arena *arena, onx_kind kind, void *message, const onxi_field *f, const void *value)
{
    const onxi_message_table *table = onxi_messages[kind];
    onx_message *head = message;
    onxi_place place;
    if (f->flags & ONXI_ONEOF)
        head->has &= ~f->group;
    if (!onxi_field_claim(table, f, message, arena, &place))
        return ONX_E_MEMORY;
    if (f->flags & ONXI_REPEATED)
        return append(arena, f, place, value);
    memcpy(place.value, value, onxi_field_size(f));
    head->has |= f->has;
    return ONX_OK;
}

/* `value` points to the bytes of one element, which replaces an existing one. */
static onx_status put(onx_arena *arena, onx_kind kind, void *message, const onxi_field *f, uint64_t index,
                      const void *value)
{
    const uint64_t count = onxi_field_count(onxi_messages[kind], f, message);
    if (!(f->flags & ONXI_REPEATED) || index >= count)
        return onxi_fail(arena->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s has no element %llu", f->name,
                         (unsigned long long)index);
    if (f->flags & ONXI_BORROW)
        return onxi_fail(arena->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "elements of %s are not written one by one",
                         f->name);
    const onxi_place place = onxi_field_place(onxi_messages[kind], f, message);
    char *list;
    memcpy(&list, place.value, sizeof list);
    memcpy(list + index * onxi_field_size(f), value, onxi_field_size(f));
    return ONX_OK;
}

enum { SINGLE = -1 }; /* passed as index to the setters below for a singular field, as onx_field_set_... does */

static onx_status store_at(onx_arena *arena, onx_kind kind, void *message, const onxi_field *f, int64_t index,
                           const void *value)
{
    return index == SINGLE ? store(arena, kind, message, f, value)
                           : put(arena, kind, message, f, (uint64_t)index, value);
}

static onx_status no_field(onx_arena *arena, onx_kind kind, const char *field)
{
    return onxi_fail(arena->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "%s has no field \"%s\" for such a value",
                     onx_kind_proto_name(kind), field);
}

static onx_status set_int(onx_arena *arena, onx_kind kind, void *message, const char *field, int64_t index,
                          int64_t value)
{
    const onxi_field *f = find_field(kind, field);
    const int32_t small = (int32_t)value;
    if (!f || f->type < ONXI_INT32 || f->type > ONXI_ENUM)
        return no_field(arena, kind, field);
    const bool is_small = onxi_field_size(f) == sizeof small;
    if (is_small && small != value)
        return onxi_fail(arena->cx, ONX_E_LIMIT, ONXI_NOWHERE, "%lld does not fit field %s", (long long)value, field);
    return store_at(arena, kind, message, f, index, is_small ? (const void *)&small : (const void *)&value);
}

static onx_status set_float(onx_arena *arena, onx_kind kind, void *message, const char *field, int64_t index,
                            double value)
{
    const onxi_field *f = find_field(kind, field);
    const float single = (float)value;
    if (!f || f->type > ONXI_DOUBLE)
        return no_field(arena, kind, field);
    return store_at(arena, kind, message, f, index,
                    f->type == ONXI_FLOAT ? (const void *)&single : (const void *)&value);
}

static onx_status set_text(onx_arena *arena, onx_kind kind, void *message, const char *field, int64_t index,
                           onx_str value)
{
    const onxi_field *f = find_field(kind, field);
    onx_bytes bytes;
    if (!f || (f->type != ONXI_STRING && f->type != ONXI_BYTES))
        return no_field(arena, kind, field);
    ONX_TRY(onx_arena_keep(arena, value, &bytes));
    return store_at(arena, kind, message, f, index, &bytes);
}

static onx_status set_message(onx_arena *arena, onx_kind kind, void *message, const char *field, int64_t index,
                              void *value)
{
    const onxi_field *f = find_field(kind, field);
    if (!f || f->type != ONXI_MESSAGE)
        return no_field(arena, kind, field);
    return store_at(arena, kind, message, f, index, &value);
}

static onx_status clear(onx_arena *arena, onx_kind kind, void *message, const char *field)
{
    const onxi_field *f = find_field(kind, field);
    onx_message *head = message;
    if (!f)
        return no_field(arena, kind, field);
    const onxi_place place = onxi_field_place(onxi_messages[kind], f, message);
    if (!place.value || !onxi_field_count(onxi_messages[kind], f, message))
        return ONX_OK;
    if (!(f->flags & ONXI_REPEATED)) {
        memset(place.value, 0, onxi_field_size(f));
        head->has &= ~f->has;
        return ONX_OK;
    }
    memset(place.value, 0, sizeof(void *));
    memset(place.count, 0, f->flags & ONXI_WIDE ? sizeof(uint64_t) : sizeof(uint32_t));
    return ONX_OK;
}

#define NEED_FIELD                                                                                                     \
    ONXI_NEED(NULL, arena);                                                                                            \
    ONXI_NEED(arena->cx, onxi_is_kind(kind));                                                                          \
    ONXI_NEED(arena->cx, message);                                                                                     \
    ONXI_NEED(arena->cx, field)

onx_status onx_field_set_int(onx_arena *arena, onx_kind kind, void *message, const char *field, int64_t value)
{
    NEED_FIELD;
    ONXI_CALL(arena->cx, set_int(arena, kind, message, field, SINGLE, value));
}

onx_status onx_field_set_float(onx_arena *arena, onx_kind kind, void *message, const char *field, double value)
{
    NEED_FIELD;
    ONXI_CALL(arena->cx, set_float(arena, kind, message, field, SINGLE, value));
}

onx_status onx_field_set_text(onx_arena *arena, onx_kind kind, void *message, const char *field, onx_str value)
{
    NEED_FIELD;
    ONXI_NEED(arena->cx, value.ptr || !value.len);
    ONXI_CALL(arena->cx, set_text(arena, kind, message, field, SINGLE, value));
}

onx_status onx_field_set_message(onx_arena *arena, onx_kind kind, void *message, const char *field, void *value)
{
    NEED_FIELD;
    ONXI_NEED(arena->cx, value);
    ONXI_CALL(arena->cx, set_message(arena, kind, message, field, SINGLE, value));
}

onx_status onx_field_clear(onx_arena *arena, onx_kind kind, void *message, const char *field)
{
    NEED_FIELD;
    ONXI_CALL(arena->cx, clear(arena, kind, message, field));
}

/* ---- lists ---- */

#define NEED_INDEX ONXI_NEED(arena->cx, index <= INT64_MAX)

onx_status onx_field_put_int(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t index,
                             int64_t value)
{
    NEED_FIELD;
    NEED_INDEX;
    ONXI_CALL(arena->cx, set_int(arena, kind, message, field, (int64_t)index, value));
}

onx_status onx_field_put_float(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t index,
                               double value)
{
    NEED_FIELD;
    NEED_INDEX;
    ONXI_CALL(arena->cx, set_float(arena, kind, message, field, (int64_t)index, value));
}

onx_status onx_field_put_text(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t index,
                              onx_str value)
{
    NEED_FIELD;
    NEED_INDEX;
    ONXI_NEED(arena->cx, value.ptr || !value.len);
    ONXI_CALL(arena->cx, set_text(arena, kind, message, field, (int64_t)index, value));
}

onx_status onx_field_put_message(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t index,
                                 void *value)
{
    NEED_FIELD;
    NEED_INDEX;
    ONXI_NEED(arena->cx, value);
    ONXI_CALL(arena->cx, set_message(arena, kind, message, field, (int64_t)index, value));
}

static void set_list(const onxi_field *f, onxi_place place, const void *list, uint64_t count)
{
    memcpy(place.value, &list, sizeof list);
    if (f->flags & ONXI_WIDE)
        *(uint64_t *)place.count = count;
    else
        *(uint32_t *)place.count = (uint32_t)count;
}

/* A list of `count` elements with the capacity that lists have (onx_list_insert). */
static char *new_list(onx_arena *arena, const onxi_field *f, uint64_t count)
{
    size_t bytes;
    if (count > UINT32_MAX || !onxi_mul_size((size_t)onxi_list_room(count), onxi_field_size(f), &bytes)) {
        onxi_no_memory(arena->cx);
        return NULL;
    }
    return onxi_arena_get(arena, bytes);
}

static onx_status splice(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t at,
                         uint64_t remove, uint64_t insert)
{
    const onxi_field *f = find_field(kind, field);
    const onxi_message_table *table = onxi_messages[kind];
    if (!f || !(f->flags & ONXI_REPEATED))
        return no_field(arena, kind, field);
    const uint64_t count = onxi_field_count(table, f, message);
    if (at > count || remove > count - at || insert > UINT32_MAX - (count - remove))
        return onxi_fail(arena->cx, ONX_E_MISUSE, ONXI_NOWHERE, "%s has %llu elements, not %llu from %llu on", field,
                         (unsigned long long)count, (unsigned long long)remove, (unsigned long long)at);
    if (f->flags & ONXI_BORROW)
        return onxi_fail(arena->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "elements of %s come and go all together", field);
    if (!remove && !insert)
        return ONX_OK;
    const size_t size = onxi_field_size(f);
    const uint64_t now = count - remove + insert;
    onxi_place place;
    if (!onxi_field_claim(table, f, message, arena, &place))
        return ONX_E_MEMORY;
    char *old, *list;
    memcpy(&old, place.value, sizeof old);
    list = old;
    /* Creates the new messages first, so that the list is unchanged after a failure. */
    void **made = f->type == ONXI_MESSAGE && insert ? ONXI_ARRAY(arena, void *, insert) : NULL;
    if (f->type == ONXI_MESSAGE && insert && !made)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; made && i < insert; i++)
        if (!(made[i] = onx_message_new(arena, (onx_kind)f->message->kind)))
            return ONX_E_MEMORY;
    if (onxi_list_room(now) > onxi_list_room(count)) {
        list = new_list(arena, f, now);
        if (!list)
            return ONX_E_MEMORY;
        if (at)
            memcpy(list, old, (size_t)at * size);
    }
    if (count - at - remove)
        memmove(list + (at + insert) * size, old + (at + remove) * size, (size_t)(count - at - remove) * size);
    if (made)
        memcpy(list + at * size, made, (size_t)insert * size);
    else if (insert)
        memset(list + at * size, 0, (size_t)insert * size);
    set_list(f, place, list, now);
    return ONX_OK;
}

onx_status onx_field_splice(onx_arena *arena, onx_kind kind, void *message, const char *field, uint64_t at,
                            uint64_t remove, uint64_t insert)
{
    NEED_FIELD;
    ONXI_CALL(arena->cx, splice(arena, kind, message, field, at, remove, insert));
}

static onx_status fill(onx_arena *arena, onx_kind kind, void *message, const char *field, const void *numbers,
                       uint64_t count)
{
    const onxi_field *f = find_field(kind, field);
    onxi_place place;
    if (!f || !(f->flags & ONXI_REPEATED) || f->type >= ONXI_STRING)
        return no_field(arena, kind, field);
    char *list = count ? new_list(arena, f, count) : NULL;
    if ((count && !list) || !onxi_field_claim(onxi_messages[kind], f, message, arena, &place))
        return ONX_E_MEMORY;
    if (count)
        memcpy(list, numbers, (size_t)count * onxi_field_size(f));
    set_list(f, place, list, count);
    return ONX_OK;
}

onx_status onx_field_fill(onx_arena *arena, onx_kind kind, void *message, const char *field, const void *numbers,
                          uint64_t count)
{
    NEED_FIELD;
    ONXI_NEED(arena->cx, numbers || !count);
    ONXI_CALL(arena->cx, fill(arena, kind, message, field, numbers, count));
}

/* ---- listing fields ---- */

bool onx_field_get(onx_kind kind, uint32_t index, onx_field_info *out)
{
    const onxi_message_table *table = onxi_is_kind(kind) ? onxi_messages[kind] : NULL;
    if (!table || !out || index >= table->field_count)
        return false;
    const onxi_field *f = &table->fields[index];
    *out = (onx_field_info){ .name = f->name,
                             .number = f->number,
                             .type = f->type,
                             .repeated = (f->flags & ONXI_REPEATED) != 0,
                             .oneof = (f->flags & ONXI_ONEOF) != 0,
                             .message = f->message ? (onx_kind)f->message->kind : ONX_KIND_NONE };
    return true;
}

const char *onx_field_enum(onx_kind kind, const char *field, uint32_t index, int32_t *value_out)
{
    const onxi_field *f = find_field(kind, field);
    const onxi_enum_name *names = f ? f->names : NULL;
    for (uint32_t i = 0; names && names[i].name; i++)
        if (i == index) {
            if (value_out)
                *value_out = names[i].value;
            return names[i].name;
        }
    return NULL;
}
