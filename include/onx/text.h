/* text.h - the ONNX text syntax: parse it into messages, print messages in it, format it (docs/notes/text.md). */
#ifndef ONX_TEXT_H
#define ONX_TEXT_H

#include <onx/io.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Literals that do not fit their tensor (count, range, booleans other than 0 and 1) are stored as they are, with a
     * warning: for writing deliberately wrong models. */
    ONX_TEXT_LENIENT = 1,
    /* Names and strings point into the text, which must outlive the document. */
    ONX_TEXT_BORROW = 2
};

/* Does the syntax have a notation for messages of the kind: model, graph, function, node, attribute, value-info,
 * tensor, type, shape? The functions below answer ONX_E_UNSUPPORTED for the others. */
ONX_API ONX_ANY_THREAD bool onx_text_has_notation(onx_kind kind);

/* Parses the whole text as one message. After an error it continues at the next node, so that one call reports several
 * independent errors, each with line, column, excerpt, what was found and what was expected; *out is NULL then. */
ONX_API ONX_OWN_THREAD onx_status onx_text_parse(onx_ctx *cx, onx_kind kind, onx_str text, uint32_t flags,
                                                 onx_doc **out);

typedef struct onx_text_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t elide; /* tensors and lists of more elements show the first few and how many there are, and the text cannot
                     * be parsed again; 0: everything is printed */
    uint32_t width; /* lines are broken at about this many bytes; 0: 100 */
    bool plain;     /* leave out the #@ comments, in which the printer keeps what the syntax has no notation for */
    /* When not NULL: the type to print beside a value that the graph or function `scope` makes, or NULL for none. */
    const onx_type *(*type_of)(void *user, onx_kind scope_kind, const void *scope, onx_str name);
    void *user;
} onx_text_options;

/* Prints a message; `options` may be NULL. The text parses back to the same message. Parts that the syntax has no
 * notation for are kept in comments that only this parser reads, named in a leading comment and in a note. */
ONX_API ONX_OWN_THREAD onx_status onx_text_print(onx_ctx *cx, onx_kind kind, const void *message,
                                                 const onx_text_options *options, onx_sink sink);

/* Rewrites a text in the style of onx_text_print; comments stay with what they were at. */
ONX_API ONX_OWN_THREAD onx_status onx_text_format(onx_ctx *cx, onx_kind kind, onx_str text, onx_sink sink);

/* Where the parts of a document that was read from text are in it. The text is parsed once more, then any number of
 * paths can be asked for. Refers to the document's text, which must stay; the document itself may change meanwhile.
 * *out is NULL, and the answer ONX_OK, for a document from another format. */
typedef struct onx_text_places onx_text_places;
ONX_API ONX_OWN_THREAD onx_status onx_text_places_new(const onx_doc *doc, onx_text_places **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_text_places_free(onx_text_places *places);
/* Line, column and byte of what a path of a diagnostic names, or of the innermost part around it that the text shows;
 * in calls of functions, inside of those. False when the path is none of this document. The excerpt is the line of the
 * text, as in diagnostics; `excerpt_out` may be NULL. */
ONX_API ONX_OWN_THREAD bool onx_text_places_find(const onx_text_places *places, onx_str path, onx_where *where_out,
                                                 onx_str *excerpt_out);

/* Gives the diagnostics of the document's context, from number `first` on, that have a path only, line, column and
 * excerpt as well. Does nothing, at no cost, when there are none or the document was not read from text; ONX_E_MEMORY
 * leaves the rest as it is. */
ONX_API ONX_OWN_THREAD onx_status onx_text_locate(const onx_doc *doc, size_t first);

#ifdef __cplusplus
}
#endif
#endif
