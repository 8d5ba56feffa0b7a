/* text.h - the ONNX text syntax: parse it into messages, print messages in it, format it (docs/notes/text.md). */
#ifndef ONX_TEXT_H
#define ONX_TEXT_H

#include <onx/io.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Store literals that do not match their tensor (count, range, booleans other than 0 and 1) as they are, with a
     * warning: for writing models that are wrong on purpose. */
    ONX_TEXT_LENIENT = 1,
    /* Names and strings point into the text, which must outlive the document. */
    ONX_TEXT_BORROW = 2
};

/* Whether the syntax has a notation for messages of the kind: model, graph, function, node, attribute, value-info,
 * tensor, type, shape. The functions below return ONX_E_UNSUPPORTED for the others. */
ONX_API ONX_ANY_THREAD bool onx_text_has_notation(onx_kind kind);

/* Parses the whole text as one message. After an error it continues at the next node, so that one call reports several
 * independent errors, each with line, column, excerpt, found text and expected text; *out is then NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_text_parse(onx_ctx *cx, onx_kind kind, onx_str text, uint32_t flags,
                                                 onx_doc **out);

typedef struct onx_text_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t elide; /* of tensors and lists with more elements, print only the first few and the count; the text can
                     * then not be parsed. 0: everything is printed */
    uint32_t width; /* lines are broken at about this many bytes; 0: 100 */
    bool plain;     /* omit the #@ comments, which keep the parts that the syntax has no notation for */
    /* If not NULL: returns the type to print next to a value that the graph or function `scope` defines, or NULL for
     * none. */
    const onx_type *(*type_of)(void *user, onx_kind scope_kind, const void *scope, onx_str name);
    void *user;
} onx_text_options;

/* Prints a message; `options` may be NULL. Parsing the text gives the same message. Parts that the syntax has no
 * notation for are kept in comments that only this parser reads; a leading comment and a note name these parts. */
ONX_API ONX_OWN_THREAD onx_status onx_text_print(onx_ctx *cx, onx_kind kind, const void *message,
                                                 const onx_text_options *options, onx_sink sink);

/* Rewrites a text in the style of onx_text_print; comments stay next to the code that they were next to. */
ONX_API ONX_OWN_THREAD onx_status onx_text_format(onx_ctx *cx, onx_kind kind, onx_str text, onx_sink sink);

/* Positions of the parts of a document in the text that it was read from. Creating it parses the text once more; after
 * that any number of paths can be looked up. It refers to the document's text, which must stay valid; the document may
 * change meanwhile. For a document of another format the status is ONX_OK and *out is NULL. */
typedef struct onx_text_places onx_text_places;
ONX_API ONX_OWN_THREAD onx_status onx_text_places_new(const onx_doc *doc, onx_text_places **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_text_places_free(onx_text_places *places);
/* Line, column and byte of the part that the path of a diagnostic names, or of the innermost enclosing part that has a
 * position in the text; for a path into the call of a function, the position inside of the function. False when the
 * path does not belong to this document. The excerpt is the line of the text, as in diagnostics; `excerpt_out` may be
 * NULL. */
ONX_API ONX_OWN_THREAD bool onx_text_places_find(const onx_text_places *places, onx_str path, onx_where *where_out,
                                                 onx_str *excerpt_out);

/* Adds line, column and excerpt to the diagnostics of the document's context, from number `first` on, that have only a
 * path. Does nothing, at no cost, when there are none or the document was not read from text. ONX_E_MEMORY leaves the
 * remaining ones unchanged. */
ONX_API ONX_OWN_THREAD onx_status onx_text_locate(const onx_doc *doc, size_t first);

#ifdef __cplusplus
}
#endif
#endif
