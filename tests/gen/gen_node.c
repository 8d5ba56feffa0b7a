/* gen_node.c - nodes from recipes: sizes, element types, operands, attributes. */
#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gen_recipe gen_recipes[] = {
#define R(operators, since, operands, attributes, outputs) { operators, since, operands, attributes, outputs },
#define OPEN(op, constants, why)
#include "gen/recipes.def"
#undef OPEN
#undef R
    { NULL, 0, NULL, NULL, 0 }
};

/* ---- random numbers: splitmix64 ---- */

uint64_t gen_next(gen_random *r)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint32_t gen_below(gen_random *r, uint32_t n)
{
    if (n > 1 && n <= 256 && r->left) {
        r->left--;
        return *r->bytes++ % n;
    }
    return n ? (uint32_t)((gen_next(r) >> 32) * n >> 32) : 0;
}

/* ---- recipes ---- */

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == 0))
            return true;
    return false;
}

const char *gen_operator_name(const onxi_schema *schema, char text[128])
{
    const char *domain = onxi_schema_domain(schema);
    const bool standard = !*domain || strcmp(domain, "ai.onnx.ml") == 0 || strncmp(domain, "ai.onnx.preview", 15) == 0;
    (void)snprintf(text, 128, "%s%s%s", standard ? "" : domain, standard ? "" : ".", schema->name);
    return text;
}

const gen_recipe *gen_recipe_for(const onxi_schema *schema, uint32_t n)
{
    return gen_runs(schema) ? gen_recipe_to_check(schema, n) : NULL;
}

bool gen_runs(const onxi_schema *schema)
{
    const onxi_operator *op = onxi_operator_find(onx_str_of(onxi_schema_domain(schema)), onx_str_of(schema->name));
    return !onxi_operator_is(onxi_operator_id(op), ONXI_TRAIT_DEVICE);
}

const gen_recipe *gen_recipe_to_check(const onxi_schema *schema, uint32_t n)
{
    int32_t newest = 0;
    char text[128];
    const char *name = gen_operator_name(schema, text);
    for (const gen_recipe *r = gen_recipes; r->operators; r++)
        if (r->since <= schema->since && r->since > newest && has_word(r->operators, name))
            newest = r->since;
    for (const gen_recipe *r = gen_recipes; r->operators && newest; r++)
        if (r->since == newest && has_word(r->operators, name) && n-- == 0)
            return r;
    return NULL;
}

/* ---- numbers of recipes ---- */

/* A number, or a letter that stands for a size. */
static double term(const gen_node *node, const char **at)
{
    if (**at >= 'A' && **at <= 'Z')
        return (double)node->size[*(*at)++ - 'A'];
    char *end;
    double x = strtod(*at, &end);
    if (end == *at)
        return 0;
    *at = end;
    return x;
}

/* Terms with * + - from left to right; a sign in front belongs to the number. */
static double expression(const gen_node *node, const char **at)
{
    double x = term(node, at);
    for (;;) {
        char op = **at;
        if (op != '*' && op != '+' && op != '-')
            return x;
        ++*at;
        double y = term(node, at);
        x = op == '*' ? x * y : op == '+' ? x + y : x - y;
    }
}

/* ---- element types ---- */

static onx_dtype dtype_of_word(const char *text, size_t len)
{
    return onx_dtype_find(onx_str_make(text, len));
}

static uint32_t types_of(const onxi_type_set *set, gen_kind kind)
{
    return kind == GEN_SEQUENCE ? set->seq : kind == GEN_OPTIONAL ? set->optional : set->tensor;
}

static onx_dtype first_of(uint32_t bits)
{
    static const uint8_t preferred[] = { ONX_FLOAT, ONX_INT64, ONX_UINT8, ONX_BOOL, ONX_INT32, ONX_DOUBLE, ONX_STRING };
    for (size_t i = 0; i < sizeof preferred; i++)
        if (bits >> preferred[i] & 1)
            return (onx_dtype)preferred[i];
    return bits ? (onx_dtype)__builtin_ctz(bits) : ONX_UNDEFINED;
}

static gen_type_choice *choice_of(gen_node *node, const char *constraint, size_t len)
{
    for (uint32_t i = 0; i < node->type_count; i++)
        if (strlen(node->types[i].constraint) == len && memcmp(node->types[i].constraint, constraint, len) == 0)
            return &node->types[i];
    return NULL;
}

/* The type that a constraint takes: what the caller asks for, what the operand says, what was taken before, the first
 * that suits. ONX_UNDEFINED where that is not allowed. */
static onx_dtype choose(gen_node *node, const gen_choice *choice, const onxi_type_constraint *c, gen_kind kind,
                        onx_dtype own)
{
    uint32_t bits = types_of(&c->set, kind);
    gen_type_choice *taken = choice_of(node, c->name, strlen(c->name));
    onx_dtype dtype = own ? own : taken ? taken->dtype : ONX_UNDEFINED;
    if (choice->type.constraint && strcmp(choice->type.constraint, c->name) == 0)
        dtype = choice->type.dtype;
    else if (choice->type.constraint && strcmp(choice->type.constraint, "*") == 0 && bits >> choice->type.dtype & 1)
        dtype = choice->type.dtype;
    if (!dtype)
        dtype = first_of(bits);
    if (!(bits >> dtype & 1))
        return ONX_UNDEFINED;
    if (!taken && node->type_count < GEN_TYPES)
        node->types[node->type_count++] = (gen_type_choice){ c->name, dtype };
    return dtype;
}

static onx_dtype port_dtype(gen_node *node, const gen_choice *choice, uint32_t input, const gen_operand *o)
{
    const onxi_port *port = onxi_port_at(node->schema->inputs, input);
    if (!port)
        return ONX_UNDEFINED;
    const onxi_type_constraint *c = onxi_schema_type(node->schema, port->type);
    if (c)
        return choose(node, choice, c, o->kind, o->dtype);
    const char *open = strrchr(port->type, '(');
    return open ? dtype_of_word(open + 1, strcspn(open + 1, ")")) : ONX_UNDEFINED;
}

/* ---- operands ---- */

/* The shape of ~ for an operand: the last axes of the common one, some of them 1. */
static void broadcast_shape(const gen_node *node, const gen_choice *choice, uint32_t input, gen_random *r,
                            gen_operand *o)
{
    uint32_t drop = input % 3;
    if (choice->vary && input)
        drop = gen_below(r, node->common_rank + 1);
    drop = drop < node->common_rank ? drop : node->common_rank;
    o->rank = node->common_rank - drop;
    for (uint32_t i = 0; i < o->rank; i++) {
        bool one = choice->vary ? input && gen_below(r, 4) == 0 : input % 3 == 1 && i + 1 == o->rank;
        o->dims[i] = one ? 1 : node->common[drop + i];
    }
}

static bool read_shape(const gen_node *node, const gen_choice *choice, uint32_t input, gen_random *r, const char **at,
                       gen_operand *o)
{
    if (**at == '=' || **at == '~') {
        o->rank = node->common_rank;
        memcpy(o->dims, node->common, sizeof o->dims);
        if (*(*at)++ == '~')
            broadcast_shape(node, choice, input, r, o);
        return true;
    }
    if (**at != '[')
        return o->kind == GEN_MAP;
    ++*at;
    while (**at && **at != ']' && o->rank < GEN_RANK) {
        o->dims[o->rank++] = (int64_t)expression(node, at);
        if (**at == ',')
            ++*at;
    }
    return *(*at)++ == ']';
}

static void read_fill(const gen_node *node, const char **at, gen_operand *o)
{
    char sort = **at;
    *at += sort == '+' || sort == 'u' || sort == '<' || sort == '{';
    o->fill = sort == '+' ? GEN_POSITIVE : sort == 'u' ? GEN_UNIT : sort == '<' ? GEN_INDEX : GEN_SMALL;
    if (sort == '<')
        o->below = (int64_t)expression(node, at);
    if (sort == '{') {
        o->fill = GEN_LISTED;
        o->constant = true;
        while (**at && **at != '}' && o->listed_count < GEN_LISTED_MAX) {
            o->listed[o->listed_count++] = expression(node, at);
            *at += **at == ',';
        }
        *at += **at == '}';
    }
}

/* seq:, opt:, map(K,V): and an element type in front of the shape. */
static void read_prefix(const char **at, gen_operand *o)
{
    for (;;) {
        size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz0123456789(,)");
        if (!len || (*at)[len] != ':')
            return;
        if (len == 3 && memcmp(*at, "seq", 3) == 0)
            o->kind = GEN_SEQUENCE;
        else if (len == 3 && memcmp(*at, "opt", 3) == 0)
            o->kind = GEN_OPTIONAL;
        else if (memcmp(*at, "map(", 4) == 0) {
            size_t comma = strcspn(*at, ",");
            o->kind = GEN_MAP;
            o->key = dtype_of_word(*at + 4, comma - 4);
            o->dtype = dtype_of_word(*at + comma + 1, len - comma - 2);
        } else
            o->dtype = dtype_of_word(*at, len);
        *at += len + 1;
    }
}

static bool read_operand(gen_node *node, const gen_choice *choice, gen_random *r, const char **at)
{
    uint32_t input = node->operand_count++;
    gen_operand *o = &node->operands[input];
    o->seed = gen_next(r);
    snprintf(o->name, sizeof o->name, "x%u", input);
    if (**at == '-') {
        ++*at;
        return true;
    }
    o->kind = GEN_TENSOR;
    read_prefix(at, o);
    if (!read_shape(node, choice, input, r, at, o))
        return false;
    read_fill(node, at, o);
    o->constant = (o->constant || (choice->fixed && input)) && o->kind == GEN_TENSOR;
    if (o->kind != GEN_MAP && !(o->dtype = port_dtype(node, choice, input, o)))
        return false;
    o->like = choice->like && onx_dtype_class_of(o->dtype) == ONX_CLASS_FLOATING ? choice->like : o->dtype;
    return **at == 0 || **at == ' ';
}

/* ---- attributes ---- */

static void add_text(char *out, size_t *len, const char *text)
{
    for (; *text && *len + 1 < GEN_ATTRIBUTES; text++)
        out[(*len)++] = *text;
    out[*len] = 0;
}

/* ', $, # and @ of a recipe replaced. */
static bool write_attributes(gen_node *node)
{
    size_t len = 0;
    node->attributes[0] = 0;
    for (const char *at = node->recipe->attributes; *at;) {
        char one[64] = { *at++, 0 };
        if (*one == '\'')
            *one = '"';
        else if (*one == '$') {
            bool open = *at == '(';
            at += open;
            snprintf(one, sizeof one, "%.0f", open ? expression(node, &at) : term(node, &at));
            at += open;
        } else if (*one == '#' || *one == '@') {
            size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
            const gen_type_choice *type = choice_of(node, at, n);
            if (!type)
                return false;
            if (*one == '#')
                snprintf(one, sizeof one, "%d", (int)type->dtype);
            else
                snprintf(one, sizeof one, "%s", onx_dtype_name(type->dtype));
            at += n;
            const size_t shape = strcspn(at, "]"); /* of a tensor, whose complex elements take two numbers each */
            const char *elements = at[shape] ? at + shape + 1 : "";
            if (at[-1 - (ptrdiff_t)n] == '@' && strncmp(elements, " {", 2) == 0 && elements[2] != '}' &&
                onx_dtype_class_of(type->dtype) == ONX_CLASS_COMPLEX && at[0] == '[')
                return false;
        }
        add_text(node->attributes, &len, one);
    }
    return len + 1 < GEN_ATTRIBUTES;
}

/* ---- nodes ---- */

static void choose_sizes(gen_node *node, const gen_choice *choice, gen_random *r)
{
    for (uint32_t i = 0; i < 26; i++)
        node->size[i] = !choice->vary ? 2 + i % 4 : gen_below(r, 64) ? 1 + gen_below(r, choice->wide ? 20 : 5) : 0;
    node->common_rank = choice->vary ? gen_below(r, 5) : 3;
    for (uint32_t i = 0; i < node->common_rank; i++)
        node->common[i] = choice->vary ? (gen_below(r, 16) ? 1 + gen_below(r, 5) : 0) : 2 + i;
    for (uint32_t i = 0; i < 26 && choice->scale && !choice->vary; i++)
        node->size[i] *= choice->scale;
    for (uint32_t i = 0; i < node->common_rank && choice->scale && !choice->vary; i++)
        node->common[i] *= choice->scale;
}

/* The sizes that make the first operand one of the dims that the caller wants, as far as its letters allow. */
static void bind_sizes(gen_node *node, const gen_choice *choice)
{
    const char *at = node->recipe->operands;
    if (!choice->dims)
        return;
    if (*at == '~' || *at == '=') {
        node->common_rank = choice->rank;
        memcpy(node->common, choice->dims, choice->rank * sizeof *node->common);
    }
    for (uint32_t i = 0; *at && *at != ']' && *at != ' ' && i < choice->rank; at++) {
        if (*at >= 'A' && *at <= 'Z' && (at[1] == ',' || at[1] == ']'))
            node->size[*at - 'A'] = choice->dims[i];
        i += *at == ',';
    }
}

bool gen_node_make(const onxi_schema *schema, const gen_recipe *recipe, const gen_choice *choice, gen_node *out)
{
    gen_random own = { .state = choice->seed }, *r = choice->random ? choice->random : &own;
    memset(out, 0, sizeof *out);
    out->schema = schema;
    out->recipe = recipe;
    choose_sizes(out, choice, r);
    bind_sizes(out, choice);
    for (const char *at = recipe->operands; *at && out->operand_count < GEN_OPERANDS; at += *at == ' ')
        if (!read_operand(out, choice, r, &at))
            return false;
    for (const onxi_type_constraint *c = schema->types; c && c->name; c++)
        if (!choice_of(out, c->name, strlen(c->name)))
            (void)choose(out, choice, c, GEN_TENSOR, ONX_UNDEFINED);
    out->output_count = recipe->outputs;
    if (!out->output_count)
        out->output_count = schema->max_output > 8 ? 1 : schema->max_output;
    return write_attributes(out);
}
