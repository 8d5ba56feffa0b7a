/* ir.h - what other layers use of the model beyond onx/ir.h: the message tables and the insides of a document. */
#ifndef ONXI_IR_H
#define ONXI_IR_H

#include <onx/io.h>
#include <onx/ir.h>
#include <onx/tensor.h>

#include "base/base.h"

/* By onx_kind; entry 0 is NULL. */
extern const onxi_message_table *const onxi_messages[ONX_KIND_COUNT];
static inline bool onxi_is_kind(onx_kind kind)
{
    return kind > ONX_KIND_NONE && kind < ONX_KIND_COUNT;
}

/* Frees what a layer above attached to a document (mappings, external files). */
typedef struct onxi_attachment {
    struct onxi_attachment *next;
    void (*release)(onx_ctx *cx, void *data);
    void *data;
} onxi_attachment;

struct onx_doc {
    onx_ctx *cx;
    onx_arena *arena;
    onx_kind kind;
    void *root;
    uint64_t input_size;
    onxi_file_id input_id; /* the file that it was read from, and its path; zeros and empty: none */
    onx_str input_path;
    onxi_guard_source guarded; /* this file, and those of external data */
    onx_str text;        /* ONNX text that it was read from, for as long as the document lives; empty: another format */
    uint32_t text_flags; /* ONX_TEXT_* of that reading */
    onxi_attachment *attachments;
    bool links;                     /* data files may be reached through links */
    const char *base_dir;           /* in the arena; NULL: external data cannot be found */
    struct onxi_external *external; /* opened data files (proto_external.c) */
    const onxi_file *input;         /* that its bytes are in, mapped or not; NULL: in none */
    struct onx_doc *also;           /* another document that its messages refer to, and that outlives it; or NULL */
    struct onxi_spilled *spilled;   /* files of bytes that were made and not kept in memory (onxi_doc_spill) */
    struct onxi_map *parts;         /* onxi_tensor_part of tensors (ir_part.c); NULL: there are none */
    /* Gives the bytes of an external tensor; set by the layer that knows files, NULL until then. */
    onx_status (*external_bytes)(onx_doc *doc, const onx_tensor *tensor, onx_str *out);
    /* The same for who copies them from the file (onxi_file_copy), where else they need not be in memory. */
    onx_status (*external_late)(onx_doc *doc, const onx_tensor *tensor, onx_str *out, const onxi_file **file);
    /* Gives back the memory of bytes that are in its files and can be read again; NULL as above. */
    void (*forget)(onx_doc *doc, onx_str bytes);
};

/* The same document for a caller that only reads it, as onx_doc_reader makes it, with an arena of its own and nothing
 * allocated: what reading makes is in the arena and attached to the reader, which is closed before the arena ends. */
onx_doc onxi_doc_reader(const onx_doc *doc, onx_ctx *cx, onx_arena *arena);
void onxi_doc_reader_close(onx_doc *reader);

/* ONX_E_INVALID unless the document holds a model with a graph. */
onx_status onxi_doc_need_graph(onx_ctx *cx, const onx_doc *doc);
onx_status onxi_doc_attach(onx_doc *doc, void (*release)(onx_ctx *cx, void *data), void *data);
typedef struct onxi_spilled {
    struct onxi_spilled *next;
    onxi_file file;
} onxi_spilled;
/* The document keeps a mapped file that its tensors refer to, and takes it over. */
onx_status onxi_doc_spill(onx_doc *doc, onxi_file *file);

/* ---- tensors that are a part of another one's elements (ir_part.c) ---- */

enum { ONXI_PART_AXES = 8 };
/* Runs of bytes that are apart, one after the other in the tensor. They are joined when they are read. */
typedef struct onxi_tensor_part {
    onx_str span;                                          /* from the first run to the end of the last */
    uint64_t run, runs;                                    /* bytes of a run; how many there are */
    uint32_t axes;                                         /* that runs are counted by, outermost first */
    uint64_t count[ONXI_PART_AXES], pitch[ONXI_PART_AXES]; /* runs, and bytes from one to the next */
} onxi_tensor_part;
/* The tensor, which has no elements itself, is this part; readers that are made of the document know it, too. */
onx_status onxi_doc_add_part(onx_doc *doc, const onx_tensor *tensor, const onxi_tensor_part *part);
/* NULL: the tensor has its own elements. `doc` may be NULL. */
const onxi_tensor_part *onxi_doc_part(const onx_doc *doc, const onx_tensor *tensor);
const char *onxi_part_run(const onxi_tensor_part *part, uint64_t run);
/* Bytes from .. from + size - 1 of the part. */
void onxi_part_copy(const onxi_tensor_part *part, uint64_t from, uint64_t size, void *out);

/* ---- paths in diagnostics: graph.node[3] "conv1" (Conv).input[0] (ir_path.c) ---- */

/* Escapes what would break a line or a terminal; cuts after about 100 bytes, between characters. Zero-terminated. */
size_t onxi_path_quote(char *out, size_t room, onx_str s);
/* What follows a message in a path, for people to know it by: ' "conv1" (Conv)'; empty for most kinds. */
enum { ONXI_LABEL_MAX = 704 };
size_t onxi_path_label(char buf[ONXI_LABEL_MAX], onx_kind kind, const void *message);
/* prefix + node[3] "conv1" (Conv), in the arena */
onx_str onxi_path_node(onx_arena *arena, onx_str prefix, uint32_t index, const onx_node *node);
/* The prefix of what is in the graph that an attribute of the node at the path holds: path + ".body." */
onx_str onxi_path_subgraph(onx_arena *arena, onx_str path, const onx_node *node, const onx_attribute *attribute);
/* The prefix of what is in the function that the node at the path calls: path + " function F " */
onx_str onxi_path_call(onx_arena *arena, onx_str path, const onx_function *function);

/* The way back, along the messages themselves: names may hold anything, so that a label ends where the message says,
 * not where it looks like it. */
typedef struct onxi_path_cursor {
    const onxi_message_table *table; /* of `message` */
    const void *message;             /* that the path has come to; NULL: to a part that is none, or is absent */
    onx_str rest;                    /* of the path */
    bool begun;
    const onxi_field *field; /* the last step; NULL for the short form of a subgraph */
    uint32_t index;          /* of the element, UINT32_MAX: none */
    const void *member;      /* where the field or element is; NULL when it is absent */
} onxi_path_cursor;
#define ONXI_PATH_NO_INDEX UINT32_MAX
onxi_path_cursor onxi_path_begin(onx_kind kind, const void *root, onx_str path);
/* One part further; false at the end, and where the path says something else than the messages. */
bool onxi_path_next(onxi_path_cursor *c);
/* Does the path continue in the function that the node calls? Then it is followed there. */
bool onxi_path_enter_call(onxi_path_cursor *c, const onx_function *function);

/* ---- external data, as text ---- */

#define ONXI_LOCATION_MAX ((size_t)4096)

typedef struct onxi_external_ref { /* what external_data of a tensor says */
    onx_str location, checksum;
    uint64_t offset, length;
    bool has_length, has_checksum;
} onxi_external_ref;

typedef struct onxi_external_fault {
    const char *rule, *text;
    onx_str value; /* the offending one, or empty */
} onxi_external_fault;

/* Reads the entries and checks the location; false with the first fault. Unknown keys and basepath are ignored.
 */
bool onxi_external_parse(const onx_tensor *tensor, onxi_external_ref *out, onxi_external_fault *fault);
/* Is it a plain relative path of a file inside a folder, on every system? */
bool onxi_location_is_sound(onx_str location, onxi_external_fault *fault);
/* Does the range fit the tensor's size (`sized`: it is known) and the file's (UINT64_MAX: not known yet)? *end_out: of
 * what the tensor has of the file. */
bool onxi_external_fits(const onxi_external_ref *ref, bool sized, uint64_t size, uint64_t file_size, uint64_t *end_out,
                        onxi_external_fault *fault);

/* ---- tensors ---- */

/* The fields that may hold elements, in the order of their numbers in the .proto. */
typedef enum onxi_data_field {
    ONXI_IN_NONE,
    ONXI_IN_FLOAT,
    ONXI_IN_INT32,
    ONXI_IN_STRING,
    ONXI_IN_INT64,
    ONXI_IN_DOUBLE,
    ONXI_IN_UINT64,
    ONXI_IN_RAW
} onxi_data_field;
/* "float_data", ...; ONXI_IN_NONE is "no field" */
extern const char *const onxi_data_field_names[];
/* The typed field that belongs to an element type. */
onxi_data_field onxi_data_field_of(int32_t dtype);
/* How many entries (bytes, for raw_data) a field has. */
uint64_t onxi_data_field_count(const onx_tensor *tensor, onxi_data_field in);

/* How int32_data holds elements of 4 or 2 bits. The .proto says "packed" and leaves open whether an entry is filled
 * with a byte's worth of them, as the reference writes, or up, and older writers gave each an entry of its own. The
 * number of entries tells; where two readings have the same number, they mean the same. */
typedef enum onxi_packing {
    ONXI_PACKED_NOT,   /* no reading has that number of entries */
    ONXI_PACKED_BYTES, /* what we write */
    ONXI_PACKED_WORDS, /* entries filled with 32 bits, the first element in the lowest ones */
    ONXI_PACKED_SINGLY
} onxi_packing;
onxi_packing onxi_packing_of(unsigned bits, uint64_t elements, uint64_t entries);

/* Sends all elements, in the layout of raw_data, to the sink; nothing of the tensor's size is allocated. */
onx_status onxi_tensor_stream(onx_doc *doc, const onx_tensor *tensor, onx_sink sink);
/* The bytes of the elements in the layout of raw_data, once it is sure that they are there, as for onx_tensor_bytes. */
onx_status onxi_tensor_measure(onx_doc *doc, const onx_tensor *tensor, uint64_t *size_out);
/* Writes them to `out`; `size` is what onxi_tensor_measure said. Nothing is allocated. */
onx_status onxi_tensor_copy(onx_doc *doc, const onx_tensor *tensor, void *out, uint64_t size);
/* Is it a tensor with data inside that fits its type and shape in number? Nothing is reported. */
bool onxi_tensor_is_sound(const onx_tensor *tensor);

/* ---- attributes (ir_build.c) ---- */

/* Where the value of an attribute is stored, by its type. */
typedef struct onxi_attribute_kind {
    uint8_t slot;      /* ONX_SLOT_* */
    bool list, needed; /* of any number of values; a message, which has no default */
    const char *field; /* "ints" */
} onxi_attribute_kind;
enum { ONXI_ATTRIBUTE_TYPES = ONX_ATTR_TYPE_PROTOS + 1 }; /* UNDEFINED counted */
/* That of UNDEFINED, whose slot is ONX_SLOT_NONE, for numbers that are no type; never NULL. */
const onxi_attribute_kind *onxi_attribute_kind_of(int32_t type);
/* The type whose values are in the slot, or UNDEFINED. */
onx_attribute_type onxi_attribute_type_in(uint32_t slot);
/* What an attribute that is there says as a number or text: 0 or nothing where its value field was left out, as proto3
 * producers do. What one that is not there says is asked of the binding of its node. */
int64_t onxi_attribute_int(const onx_attribute *a);
float onxi_attribute_float(const onx_attribute *a);
onx_str onxi_attribute_text(const onx_attribute *a);

/* ---- functions of a model, by name ---- */

/* "" for either spelling of the default domain, "" and "ai.onnx" (rule O-06). */
static inline onx_str onxi_domain_plain(onx_str domain)
{
    return onx_str_is(domain, "ai.onnx") ? onx_str_make("", 0) : domain;
}

typedef struct onxi_functions {
    onx_function *const *list;
    uint32_t count;
    onxi_table table; /* of indexes, in the arena */
} onxi_functions;

/* Of functions with the same domain, name and overload the first counts; those without a name are not found. */
onx_status onxi_functions_index(onx_arena *arena, onx_function *const *list, uint32_t count, onxi_functions *out);
/* NULL when there is none; "ai.onnx" and "" are one domain. The index into the list goes to *index_out, if that is not
 * NULL. */
const onx_function *onxi_functions_find(const onxi_functions *functions, onx_str domain, onx_str name, onx_str overload,
                                        uint32_t *index_out);

/* A function that calls itself, directly or through others: its index, ONXI_NO_ENTRY: there is none. */
onx_status onxi_functions_endless(onx_arena *arena, const onxi_functions *functions, uint32_t *out);

/* ---- devices (ir_device.c) ---- */

/* What device configurations of the node say of an operand of `before` (the node as it was; may be NULL) they say of
 * the one in its place, and nothing of what is none. The messages that the node has now stay as they are. */
onx_status onxi_node_fit_devices(onx_arena *arena, onx_node *node, const onx_node *before);

/* ---- rewriting ---- */

/* The message with every message of kind `wanted` replaced by what `replace` stores in *out, which holds the old one on
 * entry. What need not change is shared with `message`, which itself stays as it is; *out == message when nothing
 * changed. Messages inside of replaced ones are not visited. */
onx_status onxi_message_rewrite(onx_arena *arena, onx_kind kind, const void *message, onx_kind wanted,
                                onx_status (*replace)(void *user, const onx_visit *at, const void **out), void *user,
                                const void **out);

/* The message with the nodes of every graph and function in it in an order in which each comes after those that make
 * its inputs; *out == message when they are so already. Nodes keep their order otherwise. What depends on itself has no
 * such order and stays about where it is; *cycle is the first that is met. Linear in the size of the message and the
 * depth of its subgraphs. */
typedef struct onxi_cycle {
    const onx_node *node; /* that depends on itself; NULL: there is none */
    onx_str text;         /* "a needs b, which needs a": values, the first few of them */
} onxi_cycle;
onx_status onxi_message_sort(onx_arena *arena, onx_kind kind, const void *message, const void **out, onxi_cycle *cycle);
/* A warning that names the first cycle of the document's graphs and functions and says its consequence, where one is,
 * and one that names a function that calls itself; for what continues all the same. */
#define ONXI_CYCLE_STAYS   "which stays"
#define ONXI_CYCLE_UNTYPED "beyond which no types are known"
onx_status onxi_doc_warn_of_cycle(onx_doc *doc, const char *note);
/* Such an order of one list of nodes: their indexes; *out == NULL when they are in order. `cycle` may be NULL. */
onx_status onxi_nodes_order(onx_arena *arena, onx_node *const *nodes, uint32_t count, onxi_cycle *cycle,
                            uint32_t **out);

#endif
