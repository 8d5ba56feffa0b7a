/* test_check_cases.c - the cases of tests/cases/check: each rule with an input that breaks it and one that follows it.
 *
 * A case file is read line by line. `def $NAME text` names a text for use in later lines. A case begins with one of
 *   --- breaks RULE [as RULE ...]   the errors and warnings are exactly these rules, or RULE alone
 *   --- warns RULE                  the same, as warnings alone
 *   --- notes RULE                  the note, and neither errors nor warnings
 *   --- holds RULE ...              no errors, and no findings of these rules
 *   --- elsewhere RULE ... : broken TEST ... held TEST ...
 *                                   tested elsewhere: by functions of tests/unit or scripts (cli/diff.sh), which must
 *                                   exist and name the rule
 * It continues with lines `with OPTION ...`, `ir N`, `opset DOMAIN=N`, `file NAME SIZE`, `link NAME TARGET`,
 * `hard NAME TARGET`, `folder NAME`, `doc TEXTPROTO` (an operator-set document), and, last, `KIND[/FORMAT]:` followed
 * by the input: ONNX text when it begins with `<`, bytes in hexadecimal for the format hex, else protobuf text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <onx/check.h>
#include <onx/io.h>
#include <onx/text.h>

enum { BODY = 1 << 16, DEFS = 64, RULES = 512, SOURCE = 1 << 20 };

typedef struct definition {
    char name[32];
    char text[2048];
} definition;

typedef struct test_case {
    char file[256], verb[16];
    int line;
    char rules[4096]; /* what follows the verb */
    char options[256];
    long ir_version;
    char opsets[8][64];
    int opset_count;
    char doc[2048];
    char kind[32], format[16];
    char body[BODY];
    size_t body_len;
} test_case;

static bool broken[RULES], held[RULES];
static int failures, cases;
static char folder[64];

static void copy_text(char *out, size_t size, const char *text)
{
    size_t n = strlen(text);
    assert_true(n < size);
    memcpy(out, text, n + 1);
}

static size_t rule_number(const char *id)
{
    for (size_t i = 0; i < onx_rule_count(); i++)
        if (strcmp(onx_rule_get(i)->id, id) == 0)
            return i;
    return SIZE_MAX;
}

static void fail_case(const test_case *c, onx_ctx *cx, const char *why)
{
    failures++;
    print_error("%s:%d: %s %s: %s\n", c->file, c->line, c->verb, c->rules, why);
    for (size_t i = 0; cx && i < onx_diag_count(cx); i++) {
        char text[1024];
        onx_diag_format(onx_diag_get(cx, i), text, sizeof text);
        print_error("    %s\n", text);
    }
}

static onx_status read_hex(onx_ctx *cx, onx_kind kind, const char *text, onx_doc **out)
{
    static unsigned char bytes[BODY];
    size_t n = 0;
    unsigned value;
    int used;
    for (const char *p = text; sscanf(p, " %2x%n", &value, &used) == 1; p += used)
        bytes[n++] = (unsigned char)value;
    return onx_read(cx, kind, onx_str_make((const char *)bytes, n), ONX_READ_COPY, 1, out);
}

static onx_status read_input(onx_ctx *cx, const test_case *c, onx_doc **out)
{
    onx_kind kind = onx_kind_find(onx_str_of(c->kind));
    onx_str text = onx_str_make(c->body, c->body_len);
    const char *p = c->body;
    while (*p == ' ' || *p == '\n')
        p++;
    if (strcmp(c->format, "hex") == 0)
        return read_hex(cx, kind, c->body, out);
    if (strcmp(c->format, "text") == 0 || *p == '<')
        return onx_text_parse(cx, kind, text, ONX_TEXT_LENIENT, out);
    return onx_textproto_read(cx, kind, text, out);
}

static uint32_t flags_of(const test_case *c)
{
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = { { "full", ONX_CHECK_FULL },
                  { "strict", ONX_CHECK_STRICT },
                  { "custom-domains", ONX_CHECK_CUSTOM_DOMAINS },
                  { "skip-opset-compatibility", ONX_CHECK_SKIP_OPSET_COMPATIBILITY },
                  { "checksums", ONX_CHECK_CHECKSUMS },
                  { "structure", ONX_CHECK_STRUCTURE },
                  { "pedantic", ONX_CHECK_PEDANTIC },
                  { "newer-opsets", ONX_CHECK_NEWER_OPSETS } };
    uint32_t flags = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(c->options, words[i].word))
            flags |= words[i].flag;
    return flags;
}

static onx_status check_input(onx_ctx *cx, const test_case *c)
{
    onx_doc *doc = NULL, *document = NULL, *imports = NULL;
    onx_registry *registry = NULL;
    onx_check_options options = { .flags = flags_of(c), .ir_version = c->ir_version };
    assert_int_equal(onx_doc_new(cx, ONX_KIND_MODEL, &imports), ONX_OK);
    for (int i = 0; i < c->opset_count; i++) {
        onx_operator_set_id *id =
            ONX_ADD(onx_doc_arena(imports), onx_doc_model(imports), opset_import, OPERATOR_SET_ID);
        const char *equals = strchr(c->opsets[i], '=');
        onx_arena_keep(onx_doc_arena(imports), onx_str_make(c->opsets[i], (size_t)(equals - c->opsets[i])),
                       &id->domain);
        ONX_SET(operator_set_id, id, version, atoll(equals + 1));
    }
    options.opset_import = onx_doc_model(imports)->opset_import;
    options.opset_import_count = (size_t)c->opset_count;
    if (c->doc[0]) {
        assert_int_equal(onx_registry_new(cx, &registry), ONX_OK);
        assert_int_equal(onx_textproto_read(cx, ONX_KIND_OPERATOR_SET, onx_str_of(c->doc), &document), ONX_OK);
        assert_int_equal(onx_registry_load(registry, document), ONX_OK);
        options.registry = registry;
    }
    onx_status status = read_input(cx, c, &doc);
    if (status == ONX_OK && !strstr(c->options, "homeless"))
        status = onx_doc_set_base_dir(doc, folder);
    if (status == ONX_OK)
        status = onx_check(cx, doc, &options, NULL);
    onx_doc_free(doc);
    onx_registry_free(registry);
    onx_doc_free(document);
    onx_doc_free(imports);
    return status;
}

/* Findings of at least `least` are exactly those of `list`? */
static bool same_findings(onx_ctx *cx, const char *list, onx_severity least)
{
    char copy[256];
    copy_text(copy, sizeof copy, list);
    char *rest;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        bool found = false;
        for (size_t i = 0; i < onx_diag_count(cx); i++) {
            const onx_diag *d = onx_diag_get(cx, i);
            found |= d->severity >= least && d->rule && strcmp(d->rule, word) == 0;
        }
        if (!found)
            return false;
    }
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        const onx_diag *d = onx_diag_get(cx, i);
        if (d->severity < least)
            continue;
        if (!d->rule)
            return false;
        char padded[300], word[40];
        snprintf(padded, sizeof padded, " %s ", list);
        snprintf(word, sizeof word, " %s ", d->rule);
        if (!strstr(padded, word))
            return false;
    }
    return true;
}

static void mark(bool *set, const test_case *c, const char *ids)
{
    char copy[4096];
    copy_text(copy, sizeof copy, ids);
    char *rest;
    for (char *id = strtok_r(copy, " ", &rest); id && strcmp(id, "as") != 0 && strcmp(id, ":") != 0;
         id = strtok_r(NULL, " ", &rest)) {
        size_t n = rule_number(id);
        if (n == SIZE_MAX)
            fail_case(c, NULL, "there is no such rule");
        else
            set[n] = true;
    }
}

/* ---- rules that other tests take care of ---- */

static char *read_source(const char *folder_name, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, ONX_SOURCE_DIR "/tests/%s/%s", folder_name, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *text = calloc(1, SOURCE);
    assert_non_null(text);
    assert_true(fread(text, 1, SOURCE - 1, f) < SOURCE - 1);
    fclose(f);
    return text;
}

/* "m12" for M-12. */
static void short_id(const char *id, char *out)
{
    for (; *id; id++)
        if (*id != '-')
            *out++ = (char)(*id >= 'A' && *id <= 'Z' ? *id - 'A' + 'a' : *id);
    *out = 0;
}

/* The function is there, is called, and it or its file names the rule. */
static bool is_test_of(const char *source, const char *test, const char *id)
{
    char head[160], call[160], brief[16];
    snprintf(head, sizeof head, "static void %s(", test);
    snprintf(call, sizeof call, "(%s", test);
    short_id(id, brief);
    return strstr(source, head) && strstr(source, call) && (strstr(test, brief) || strstr(source, id));
}

static bool find_test(const char *test, const char *id)
{
    struct dirent **list;
    bool found = false;
    if (strncmp(test, "cli/", 4) == 0) {
        char *text = read_source("cli", test + 4);
        found = text && strstr(text, id);
        free(text);
        return found;
    }
    int n = scandir(ONX_SOURCE_DIR "/tests/unit", &list, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(list[i]->d_name);
        if (!found && len > 2 && strcmp(list[i]->d_name + len - 2, ".c") == 0) {
            char *text = read_source("unit", list[i]->d_name);
            found = text && is_test_of(text, test, id);
            free(text);
        }
        free(list[i]);
    }
    free(list);
    return found;
}

/* Each rule of the line with each of its tests. */
static void prove(const test_case *c)
{
    char ids[4096], *tests = NULL, *rest, *rest_of_tests;
    copy_text(ids, sizeof ids, c->rules);
    if ((tests = strstr(ids, " : ")) != NULL) {
        *tests = 0;
        tests += 3;
    }
    for (char *id = strtok_r(ids, " ", &rest); id; id = strtok_r(NULL, " ", &rest)) {
        size_t rule = rule_number(id);
        bool *set = NULL;
        char words[4096];
        copy_text(words, sizeof words, tests ? tests : "");
        if (rule == SIZE_MAX)
            fail_case(c, NULL, "there is no such rule");
        for (char *w = strtok_r(words, " ", &rest_of_tests); w && rule != SIZE_MAX;
             w = strtok_r(NULL, " ", &rest_of_tests)) {
            if (strcmp(w, "broken") == 0 || strcmp(w, "held") == 0)
                set = w[0] == 'b' ? broken : held;
            else if (set && find_test(w, id))
                set[rule] = true;
            else
                fail_case(c, NULL, w);
        }
    }
}

static void run_case(const test_case *c)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    cases++;
    if (strcmp(c->verb, "elsewhere") == 0) {
        prove(c);
        onx_ctx_free(cx);
        return;
    }
#ifndef ONX_WITH_CRYPTO
    if (flags_of(c) & ONX_CHECK_CHECKSUMS) {
        print_message("%s:%d: skipped, checksums need libcrypto\n", c->file, c->line);
        mark(strcmp(c->verb, "holds") == 0 ? held : broken, c, c->rules);
        onx_ctx_free(cx);
        return;
    }
#endif
#ifndef ONX_DOMAIN_MICROSOFT
    if (strstr(c->body, "com.microsoft.")) {
        print_message("%s:%d: skipped, this build lacks com.microsoft\n", c->file, c->line);
        onx_ctx_free(cx);
        return;
    }
#endif
    onx_status status = check_input(cx, c);
    const char *as = strstr(c->rules, " as ");
    if (strcmp(c->verb, "breaks") == 0 || strcmp(c->verb, "warns") == 0) {
        if (c->verb[0] == 'w' && status != ONX_OK)
            fail_case(c, cx, "only warnings are expected");
        if (!same_findings(cx, as ? as + 4 : c->rules, ONX_WARNING))
            fail_case(c, cx, "other findings than expected");
        mark(broken, c, c->rules);
    } else if (strcmp(c->verb, "notes") == 0) {
        if (status != ONX_OK || onx_diag_total(cx, ONX_WARNING) || !same_findings(cx, "", ONX_WARNING))
            fail_case(c, cx, "only notes are expected");
        bool found = false;
        for (size_t i = 0; i < onx_diag_count(cx); i++)
            found |= onx_diag_get(cx, i)->rule && strcmp(onx_diag_get(cx, i)->rule, c->rules) == 0;
        if (!found)
            fail_case(c, cx, "the note is missing");
        mark(broken, c, c->rules);
    } else if (strcmp(c->verb, "holds") == 0) {
        if (status != ONX_OK)
            fail_case(c, cx, "an error was not expected");
        char padded[4200], word[40];
        snprintf(padded, sizeof padded, " %s ", c->rules);
        for (size_t i = 0; i < onx_diag_count(cx); i++) {
            snprintf(word, sizeof word, " %s ", onx_diag_get(cx, i)->rule ? onx_diag_get(cx, i)->rule : "?");
            if (strstr(padded, word))
                fail_case(c, cx, "a rule that holds was reported");
        }
        mark(held, c, c->rules);
    } else {
        fail_case(c, cx, "there is no such verb");
    }
    onx_ctx_free(cx);
}

/* ---- reading a case file ---- */

static void path_in_folder(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static void make_file(const char *name, long size)
{
    char path[512];
    path_in_folder(path, sizeof path, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (long i = 0; i < size; i++)
        fputc(0, f);
    fclose(f);
}

static void empty_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (folder[0] && system(command) != 0)
        fail();
    snprintf(folder, sizeof folder, "/tmp/onx_check_XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void expand(const definition *defs, int def_count, const char *line, char *out, size_t size)
{
    size_t n = 0;
    while (*line && n + 1 < size) {
        int found = -1;
        if (*line == '$')
            for (int i = 0; i < def_count; i++)
                if (strncmp(line, defs[i].name, strlen(defs[i].name)) == 0 &&
                    (found < 0 || strlen(defs[i].name) > strlen(defs[found].name)))
                    found = i;
        if (found < 0) {
            out[n++] = *line++;
            continue;
        }
        n += (size_t)snprintf(out + n, size - n, "%s", defs[found].text);
        line += strlen(defs[found].name);
        if (n >= size)
            n = size - 1;
    }
    out[n] = 0;
}

static void set_up(test_case *c, char *line)
{
    char a[300], b[300];
    if (strncmp(line, "with ", 5) == 0)
        copy_text(c->options, sizeof c->options, line + 5);
    else if (sscanf(line, "ir %ld", &c->ir_version) == 1)
        return;
    else if (sscanf(line, "opset %63s", c->opsets[c->opset_count]) == 1)
        c->opset_count++;
    else if (sscanf(line, "file %299s %299s", a, b) == 2)
        make_file(a, atol(b));
    else if (sscanf(line, "folder %299s", a) == 1) {
        char path[512];
        path_in_folder(path, sizeof path, a);
        assert_int_equal(mkdir(path, 0700), 0);
    } else if (sscanf(line, "link %299s %299s", a, b) == 2) {
        char path[512];
        path_in_folder(path, sizeof path, a);
        assert_int_equal(symlink(b, path), 0);
    } else if (sscanf(line, "hard %299s %299s", a, b) == 2) {
        char path[512], target[512];
        path_in_folder(path, sizeof path, a);
        path_in_folder(target, sizeof target, b);
        assert_int_equal(link(target, path), 0);
    } else if (strncmp(line, "doc ", 4) == 0)
        copy_text(c->doc, sizeof c->doc, line + 4);
    else
        fail_case(c, NULL, line);
}

static void run_file(const char *path, const char *name)
{
    static definition defs[DEFS];
    static test_case c;
    static char line[8192], full[16384];
    int def_count = 0, number = 0;
    bool open = false, body = false;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        number++;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "def ", 4) == 0 && def_count < DEFS) {
            definition d;
            assert_int_equal(sscanf(line, "def %31s %2047[^\n]", d.name, d.text), 2);
            expand(defs, def_count, d.text, defs[def_count].text, sizeof d.text);
            memcpy(defs[def_count].name, d.name, sizeof d.name);
            def_count++;
            continue;
        }
        if (strncmp(line, "--- ", 4) == 0) {
            if (open)
                run_case(&c);
            memset(&c, 0, sizeof c);
            copy_text(c.file, sizeof c.file, name);
            c.line = number;
            assert_true(sscanf(line, "--- %15s %4095[^\n]", c.verb, c.rules) == 2);
            open = true;
            body = false;
            empty_folder();
            continue;
        }
        if (!open || (!body && (!line[0] || line[0] == '#')))
            continue;
        expand(defs, def_count, line, full, sizeof full);
        const char *text = full;
        if (!body) {
            int used = 0;
            char kind[64];
            if (sscanf(full, "%63[a-z/-]:%n", kind, &used) != 1 || !used) {
                set_up(&c, full);
                continue;
            }
            body = true;
            char *slash = strchr(kind, '/');
            if (slash)
                *slash++ = 0;
            copy_text(c.kind, sizeof c.kind, kind);
            copy_text(c.format, sizeof c.format, slash ? slash : "");
            text = full + used;
        }
        size_t n = strlen(text);
        if (c.body_len + n + 2 < sizeof c.body) {
            memcpy(c.body + c.body_len, text, n);
            c.body_len += n;
            c.body[c.body_len++] = '\n';
        }
    }
    if (open)
        run_case(&c);
    fclose(f);
}

static void test_check_cases__all(void **state)
{
    (void)state;
    const char *dir = ONX_SOURCE_DIR "/tests/cases/check";
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char path[1024];
        size_t len = strlen(list[i]->d_name);
        if (len > 5 && strcmp(list[i]->d_name + len - 5, ".case") == 0) {
            snprintf(path, sizeof path, "%s/%s", dir, list[i]->d_name);
            run_file(path, list[i]->d_name);
        }
        free(list[i]);
    }
    free(list);
    empty_folder();
    rmdir(folder);
    print_message("%d cases\n", cases);
    assert_int_equal(failures, 0);
}

/* ---- W-21: every string of every message ---- */

/* Zddd with a byte at its end that no text has: the check says so as an error. */
static void spoil(onx_kind kind, onx_str bytes, size_t place)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    char marker[5] = "";
    bool found = false;
    memcpy(marker, bytes.ptr + place, 4);
    char *copy = malloc(bytes.len);
    assert_non_null(copy);
    memcpy(copy, bytes.ptr, bytes.len);
    for (size_t i = 0; i + 4 <= bytes.len; i++)
        if (memcmp(copy + i, marker, 4) == 0)
            copy[i + 3] = (char)0xff;
    assert_int_equal(onx_read(cx, kind, onx_str_make(copy, bytes.len), 0, 1, &doc), ONX_OK);
    assert_int_equal(onx_check(cx, doc, NULL, NULL), ONX_E_INVALID);
    for (size_t i = 0; i < onx_diag_count(cx); i++) {
        const onx_diag *d = onx_diag_get(cx, i);
        found |= d->severity == ONX_ERROR && d->rule && (strcmp(d->rule, "W-21") == 0 || strcmp(d->rule, "N-11") == 0);
    }
    if (!found) {
        print_error("nothing is said of %s, which is not UTF-8\n", marker);
        failures++;
    }
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(copy);
}

static void spoil_each(onx_kind kind, const char *name)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_doc *doc;
    onx_buffer buffer;
    unsigned count = 0;
    char *text = read_source("cases/check", name);
    assert_non_null(text);
    assert_int_equal(onx_textproto_read(cx, kind, onx_str_of(text), &doc), ONX_OK);
    assert_int_equal(onx_write(cx, kind, onx_doc_root(doc, kind), 0, &buffer), ONX_OK);
    for (size_t i = 0; i + 4 <= buffer.len; i++) {
        const char *p = (const char *)buffer.ptr + i;
        char digits[4] = { p[1], p[2], p[3], 0 };
        if (p[0] == 'Z' && strspn(digits, "0123456789") == 3) {
            spoil(kind, onx_str_make((const char *)buffer.ptr, buffer.len), i);
            count++;
        }
    }
    assert_true(count >= 6);
    onx_buffer_free(&buffer);
    onx_doc_free(doc);
    onx_ctx_free(cx);
    free(text);
}

static void test_check_cases__every_text_is_looked_at(void **state)
{
    (void)state;
    failures = 0;
    spoil_each(ONX_KIND_MODEL, "texts_of_a_model.textproto");
    spoil_each(ONX_KIND_OPERATOR_SET, "texts_of_an_operator_set.textproto");
    assert_int_equal(failures, 0);
}

/* Each rule has a case, or a test named by one, that breaks it and one that does not. */
static void test_check_cases__cover_every_rule(void **state)
{
    (void)state;
    int missing = 0;
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        if (rule->by != ONX_BY_NATURE && !broken[i]) {
            print_error("no case breaks %s\n", rule->id);
            missing++;
        }
        if (!held[i]) {
            print_error("no case holds %s\n", rule->id);
            missing++;
        }
    }
    assert_int_equal(missing, 0);
}

static void test_check_cases__rules_are_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < onx_rule_count(); i++) {
        const onx_rule *rule = onx_rule_get(i);
        assert_non_null(rule);
        assert_ptr_equal(rule, onx_rule_find(onx_str_of(rule->id)));
        assert_true(rule->text[0] && rule->source[0] && rule->example[0] && onx_rule_group(rule)[0]);
        if (rule->see)
            assert_non_null(onx_rule_find(onx_str_of(rule->see)));
        if (i) {
            const onx_rule *before = onx_rule_get(i - 1);
            size_t n = strcspn(rule->id, "-");
            int number = atoi(rule->id + n + 1);
            bool same = strncmp(before->id, rule->id, n + 1) == 0;
            assert_int_equal(number, same ? atoi(before->id + n + 1) + 1 : 1);
        }
    }
    assert_null(onx_rule_get(onx_rule_count()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_cases__all),
        cmocka_unit_test(test_check_cases__every_text_is_looked_at),
        cmocka_unit_test(test_check_cases__cover_every_rule),
        cmocka_unit_test(test_check_cases__rules_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
