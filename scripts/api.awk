# api.awk - the public headers as data. awk -v form=FORM -f api.awk include/onx/*.h (and the .def files beside them)
#   form=c     a C program that prints onx.json (docs/bindings.md), or with the argument abi the listing of scripts/check_abi
#   form=md    the reference as one page
#   form=man   -v dir=DIR: a man page per header with all that it declares, and a link to it per function
function fail(why) { print "api.awk: " why >"/dev/stderr"; failed = 1 }
function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
function plain(s) { gsub(/\n[ \t]*\*/, "\n", s); return trim(s) } # what a comment says
function strip(s,    at, end) { # without comments
    while (at = index(s, "/*")) { end = index(substr(s, at + 2), "*/"); s = substr(s, 1, at - 1) " " substr(s, at + 2 + end + 1) }
    return s
}
function split_list(list, out,    n, depth, i, c, word) { # at commas that are in no parentheses
    n = 0; depth = 0; word = ""
    for (i = 1; i <= length(list); i++) {
        c = substr(list, i, 1)
        if (c == "(" || c == "[") depth++
        if (c == ")" || c == "]") depth--
        if (c == "," && !depth) { out[++n] = trim(word); word = "" } else word = word c
    }
    if (trim(word) != "" && trim(word) != "void") out[++n] = trim(word)
    return n
}
# The name that a declarator gives, and in `declared` the type without it.
function name_of(decl,    name) {
    if (match(decl, /\(\*[a-zA-Z_0-9]+\)/)) {
        name = substr(decl, RSTART + 2, RLENGTH - 3)
        declared = substr(decl, 1, RSTART + 1) substr(decl, RSTART + RLENGTH - 1)
        return name
    }
    array = ""
    if (match(decl, /\[[^\]]*\]$/)) { array = substr(decl, RSTART); decl = substr(decl, 1, RSTART - 1) }
    match(decl, /[A-Za-z0-9_]+$/)
    name = substr(decl, RSTART)
    declared = trim(substr(decl, 1, RSTART - 1)) array
    return name
}
function add_item(kind, name, doc) {
    items++; item_kind[items] = kind; item_name[items] = name; item_doc[items] = doc; item_header[items] = header; item_section[items] = section
    return items
}
function add_function(head, list, doc, is_inline,    n, i, arg, it, name, threads) {
    head = trim(head); threads = "ANY"
    sub(/^(ONX_API|static inline) /, "", head)
    if (match(head, /^ONX_[A-Z]+_THREAD /)) { threads = substr(head, 5, RLENGTH - 12); head = substr(head, RLENGTH + 1) }
    name = name_of(head)
    if (name in seen) return
    seen[name] = 1
    it = add_item("function", name, doc)
    returns[it] = declared; thread[it] = threads; inlined[it] = is_inline
    n = split_list(list, arg); params[it] = n
    for (i = 1; i <= n; i++)
        if (arg[i] == "...") { param_name[it, i] = "..."; param_type[it, i] = "..." }
        else { param_name[it, i] = name_of(arg[i]); param_type[it, i] = declared }
}
function add_member(it, decl, doc,    n, i, part, base, name) {
    decl = trim(decl)
    if (decl == "") return
    n = split_list(decl, part)
    base = ""
    for (i = 1; i <= n; i++) {
        # The second of `const char *a, *b` has the type of the first without its stars.
        if (i > 1) part[i] = base " " part[i]
        name = name_of(part[i])
        if (i == 1) { base = declared; sub(/[ *]+(const)?[ *]*$/, "", base); sub(/\[.*$/, "", base) }
        members[it]++
        member_name[it, members[it]] = name; member_type[it, members[it]] = declared; member_doc[it, members[it]] = doc
    }
}
function add_members(it, body,    at, decl, doc, end, rest) {
    if (body ~ /ONX_MESSAGE_HEAD/) message[it] = 1
    while (match(body, /ONX_MESSAGE_HEAD\([^)]*\)/)) { rest = substr(body, RSTART + 17, RLENGTH - 18); body = substr(body, 1, RSTART - 1) "uint32_t has; " rest "; onx_extra *extra" substr(body, RSTART + RLENGTH) }
    sub(/ONX_ATTRIBUTE_VALUES/, macro_text["ONX_ATTRIBUTE_VALUES"], body)
    doc = ""
    while (body != "") {
        if (match(body, /^[ \t\n]+/)) { body = substr(body, RLENGTH + 1); continue }
        if (substr(body, 1, 2) == "/*") { end = index(body, "*/"); doc = plain(substr(body, 3, end - 3)); body = substr(body, end + 2); continue }
        if (match(body, /^(union|struct) *\{/)) { body = substr(body, RLENGTH + 1); opened = members[it] + 1; continue }
        if (match(body, /^\}[^;]*;/)) { # of a part with a name, each member has that before its own
            decl = trim(substr(body, 2, RLENGTH - 2)); body = substr(body, RLENGTH + 1)
            for (at = opened; decl != "" && at <= members[it]; at++) member_name[it, at] = decl "." member_name[it, at]
            continue
        }
        at = index(body, ";")
        if (!at) break
        decl = strip(substr(body, 1, at - 1)); body = substr(body, at + 1)
        # A remark behind a member, on its line, is about it.
        if (match(body, /^[ \t]*\/\*/)) { end = index(body, "*/"); match(body, /\/\*/); doc = plain(substr(body, RSTART + 2, end - RSTART - 2)); body = substr(body, end + 2) }
        add_member(it, decl, doc); doc = ""
    }
}
function add_values(it, body,    n, i, part, line, file, name, doc, prefix, word) {
    # Rows of a .def file, named by the macro before it.
    while (match(body, /#define [A-Z]+\([^)]*\)[^\n]*/)) {
        line = substr(body, RSTART, RLENGTH); prefix = line; sub(/^#define [A-Z]+\([^)]*\) */, "", prefix); sub(/##.*/, "", prefix)
        word = line; sub(/^#define /, "", word); sub(/\(.*/, "", word)
        match(body, /#include <onx\/[a-z]+\.def>/); file = substr(body, RSTART + 14, RLENGTH - 15)
        sub(/#define [^\n]*/, "", body)
        name = ""
        for (i = 1; i <= def_rows[file]; i++) if (index(def_row[file, i], word "(") == 1) { doc = substr(def_row[file, i], length(word) + 2); sub(/[,)].*/, "", doc); name = name prefix trim(doc) ", " }
        sub(/#include <onx\/[a-z]+\.def>/, name, body)
    }
    doc = body
    while (match(body, /^[ \t\n]+/)) body = substr(body, RLENGTH + 1)
    n = split(strip(body), part, ",")
    for (i = 1; i <= n; i++) {
        line = trim(part[i]); sub(/ *=.*/, "", line)
        if (line !~ /^[A-Za-z_][A-Za-z0-9_]*$/) continue
        values[it]++; value_name[it, values[it]] = line; value_doc[it, values[it]] = ""
        # The comment behind its comma.
        if (match(doc, "(^|[ \n\t,])" line "[^,]*,?[ \t]*\n?[ \t]*/\\*")) { value_doc[it, values[it]] = substr(doc, RSTART + RLENGTH); sub(/\*\/.*/, "", value_doc[it, values[it]]); value_doc[it, values[it]] = plain(value_doc[it, values[it]]) }
    }
}
function body_end(s,    depth, at) { # where the bracket closes that s begins with
    depth = 0; at = 0
    while (match(substr(s, at + 1), /[{}]/)) {
        at += RSTART; depth += substr(s, at, 1) == "{" ? 1 : -1
        if (!depth) return at
    }
    return length(s)
}
function parse(text,    remark, at, head, end, body, name, it, list, line) {
    remark = ""
    # The remark at the top is about the header.
    if (match(text, /^\/\*/)) { end = index(text, "*/"); about[header] = plain(substr(text, 3, end - 3)); text = substr(text, end + 2) }
    while (text != "") {
        if (match(text, /^[ \t\n]+/)) {
            if (substr(text, 1, RLENGTH) ~ /\n[ \t]*\n/) remark = ""
            text = substr(text, RLENGTH + 1); continue
        }
        if (substr(text, 1, 2) == "/*") {
            end = index(text, "*/"); remark = plain(substr(text, 3, end - 3)); text = substr(text, end + 2)
            if (remark ~ /^---- /) { section = remark; sub(/^---- /, "", section); sub(/ ----.*/, "", section) }
            continue
        }
        if (substr(text, 1, 1) == "#") {
            line = ""
            while (match(text, /^[^\n]*\\\n/)) { line = line substr(text, 1, RLENGTH - 2) " "; text = substr(text, RLENGTH + 1) }
            match(text, /^[^\n]*/); line = line substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1)
            if (match(line, /^#define ONX_[A-Z0-9_]+/)) {
                name = substr(line, 9, RLENGTH - 8); macro_text[name] = substr(line, RLENGTH + 1)
                if (name !~ /_H$/ && !((header, name) in seen_macro)) { seen_macro[header, name] = 1; add_item("macro", name, remark) }
            }
            remark = ""; continue
        }
        if (match(text, /^extern "C" *\{/) || match(text, /^\}/)) { text = substr(text, RLENGTH + 1); continue }
        at = match(text, /[;{]/)
        if (!at) break
        head = strip(substr(text, 1, at - 1)); head = trim(head)
        # A comment may hold the bracket or semicolon.
        if (index(substr(text, 1, at - 1), "/*") && !index(substr(text, 1, at - 1), "*/")) { end = index(text, "*/"); match(text, /\/\*/); text = substr(text, 1, RSTART - 1) substr(text, end + 2); continue }
        text = substr(text, at)
        body = ""
        if (substr(text, 1, 1) == "{") { end = body_end(text); body = substr(text, 2, end - 2); text = substr(text, end + 1) }
        else text = substr(text, 2)
        if (head ~ /^(ONX_API|static inline) / && match(head, /\(/)) {
            list = substr(head, RSTART + 1); line = substr(head, 1, RSTART - 1)
            sub(/\) *(ONX_PRINTF\([^)]*\))? *$/, "", list)
            add_function(line, list, remark, head ~ /^static/)
        } else if (head ~ /^(typedef )?enum/) {
            name = head; sub(/^(typedef )?enum */, "", name)
            it = add_item("enum", name, remark); add_values(it, body)
        } else if (head ~ /^(typedef )?struct [a-z_0-9]+$/ && body != "") {
            name = head; sub(/^(typedef )?struct /, "", name)
            it = add_item("struct", name, remark); add_members(it, body)
        } else if (head ~ /^typedef struct [a-z_0-9]+ [a-z_0-9]+$/) {
            name = head; sub(/.* /, "", name); handle_doc[name] = remark; handle_header[name] = header; handle[++handles] = name
        } else if (head ~ /^typedef .*\(\*[a-z_0-9]+\)/) {
            match(head, /\(\*[a-z_0-9]+\)/); add_item("callback", substr(head, RSTART + 2, RLENGTH - 3), remark)
        }
        if (body != "" && head !~ /^static/) { match(text, /^[^;]*;/); text = substr(text, RLENGTH + 1) }
        remark = ""
    }
}
FNR == 1 { flush_file(); name = FILENAME; sub(/.*\//, "", name); header = name; all = "" }
FILENAME ~ /\.def$/ { def_rows[header]++; def_row[header, def_rows[header]] = $0; next }
{ all = all $0 "\n" }
function flush_file() { if (all != "") { section = ""; parse(all) }; all = "" }

# ---- what can be told from a declaration ----
function errors_of(it,    s, list, word) {
    if (returns[it] != "onx_status") return ""
    list = "ONX_E_MISUSE ONX_E_MEMORY"; s = item_doc[it]
    while (match(s, /ONX_E_[A-Z]+/)) { word = substr(s, RSTART, RLENGTH); s = substr(s, RSTART + RLENGTH); if (index(" " list " ", " " word " ") == 0) list = list " " word }
    return list
}
function may_be_null(it, i) { return item_doc[it] ~ ("`" param_name[it, i] "`[^.:;]* may be NULL") || item_doc[it] ~ /NULL is allowed/ || param_name[it, i] == "user" }
# What an argument `T **out` makes is freed by T_free, where there is one.
function freed_by(type,    base) {
    if (type !~ /^onx_[a-z_]+ \*\*$/) return ""
    base = type; sub(/ \*\*$/, "", base)
    return (base "_free") in seen ? base "_free" : ""
}
# ---- a C program ----
function quote(s) { gsub(/["\\]/, "\\\\&", s); gsub(/\n/, "\\\\n", s); return "\"" s "\"" }
function json(s) { gsub(/["\\]/, "\\\\&", s); gsub(/\t/, " ", s); return "\"" s "\"" }
function put(s) { print "    fputs(" quote(s) ", stdout);" }
function put_number(expression) { print "    printf(\"%lld\", (long long)(" expression "));" }
function c_function(it,    i, e, n, word, comma, f) {
    put("{\"name\": " json(item_name[it]) ", \"header\": " json("onx/" item_header[it]) ", \"section\": " json(item_section[it]) ", \"returns\": " json(returns[it]) ", \"inline\": " (inlined[it] ? "true" : "false") ", \"threads\": " json(tolower(thread[it])) ", \"parameters\": [")
    for (i = 1; i <= params[it]; i++) {
        f = freed_by(param_type[it, i])
        put((i > 1 ? ", " : "") "{\"name\": " json(param_name[it, i]) ", \"type\": " json(param_type[it, i]) ", \"null\": " (may_be_null(it, i) ? "true" : "false") (f == "" ? "" : ", \"owned_by_caller\": true, \"free\": " json(f)) "}")
    }
    put("], \"errors\": [")
    n = split(errors_of(it), word, " ")
    for (i = 1; i <= n; i++) put((i > 1 ? ", " : "") json(word[i]))
    put("], \"text\": " json(item_doc[it]) "}")
}
function c_struct(it,    i, name, m) {
    name = item_name[it]
    put("{\"name\": " json(name) ", \"header\": " json("onx/" item_header[it]) ", \"text\": " json(item_doc[it]) ", \"size\": ")
    put_number("sizeof(struct " name ")")
    put(", \"members\": [")
    for (i = 1; i <= members[it]; i++) {
        m = member_name[it, i]
        put((i > 1 ? ", " : "") "{\"name\": " json(m) ", \"type\": " json(member_type[it, i]) ", \"offset\": ")
        put_number("offsetof(struct " name ", " m ")"); put(", \"size\": "); put_number("sizeof(((struct " name " *)0)->" m ")")
        put(", \"text\": " json(member_doc[it, i]) "}")
    }
    put("]}")
}
function c_enum(it,    i) {
    put("{\"name\": " json(item_name[it]) ", \"header\": " json("onx/" item_header[it]) ", \"text\": " json(item_doc[it]) ", \"values\": [")
    for (i = 1; i <= values[it]; i++) {
        put((i > 1 ? ", " : "") "{\"name\": " json(value_name[it, i]) ", \"value\": "); put_number(value_name[it, i]); put(", \"text\": " json(value_doc[it, i]) "}")
    }
    put("]}")
}
function c_all(kind, title,    it, first) {
    put("\"" title "\": [\n"); first = 1
    for (it = 1; it <= items; it++) if (item_kind[it] == kind) {
        if (!first) put(",\n")
        first = 0
        if (kind == "function") c_function(it)
        else if (kind == "struct") c_struct(it)
        else if (kind == "enum") c_enum(it)
        else put("{\"name\": " json(item_name[it]) ", \"header\": " json("onx/" item_header[it]) ", \"text\": " json(item_doc[it]) "}")
    }
    put("\n]")
}
function form_c(    it, i, first, list) {
    print "/* Made by scripts/api.awk: prints onx.json, or with the argument abi the listing that scripts/check_abi compares. */"
    print "#include <onx/ffi.h>\n#include <onx/onx.h>\n#include <onx/plugin.h>\n\n#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n"
    print "static void print_json(void)\n{"
    put("{\"version\": "); print "    printf(\"\\\"%s\\\"\", onx_version_text());"; put(",\n")
    c_all("function", "functions"); put(",\n"); c_all("struct", "structs"); put(",\n"); c_all("enum", "enums"); put(",\n"); c_all("macro", "macros"); put(",\n"); c_all("callback", "callbacks"); put(",\n\"handles\": [")
    first = 1
    for (i = 1; i <= handles; i++) if (!(handle[i] in is_struct)) {
        put((first ? "" : ", ") "{\"name\": " json(handle[i]) ", \"header\": " json("onx/" handle_header[handle[i]]) ", \"free\": " json((handle[i] "_free") in seen ? handle[i] "_free" : "") ", \"text\": " json(handle_doc[handle[i]]) "}"); first = 0
    }
    put("]}\n"); print "}\n\nstatic void print_abi(void)\n{"
    for (it = 1; it <= items; it++) {
        if (item_header[it] ~ /^(kernel|plugin)\.h$/) continue
        if (item_kind[it] == "function" && !inlined[it]) {
            list = ""
            for (i = 1; i <= params[it]; i++) list = list (i > 1 ? ", " : "") param_type[it, i]
            put("function " item_name[it] " " returns[it] " (" list ")\n")
        }
        for (i = 1; i <= values[it]; i++) { put("number " value_name[it, i] " "); put_number(value_name[it, i]); put("\n") }
        if (item_kind[it] != "struct") continue
        if (!message[it] && member_name[it, 1] != "struct_size" && item_name[it] !~ /^onx_(diag|rule|value|run_event|infer_loss)$/) { put("size " item_name[it] " "); put_number("sizeof(struct " item_name[it] ")"); put("\n") }
        for (i = 1; i <= members[it]; i++) { put("member " item_name[it] "." member_name[it, i] " " member_type[it, i] " at "); put_number("offsetof(struct " item_name[it] ", " member_name[it, i] ")"); put("\n") }
    }
    print "}\n\nint main(int argc, char **argv)\n{\n    if (argc > 1 && strcmp(argv[1], \"abi\") == 0)\n        print_abi();\n    else\n        print_json();\n    return ferror(stdout) || fflush(stdout) ? 1 : 0;\n}"
}
# ---- pages ----
function declaration(it,    i, s) {
    s = returns[it] (returns[it] ~ /\*$/ ? "" : " ") item_name[it] "("
    for (i = 1; i <= params[it]; i++) s = s (i > 1 ? ", " : "") (param_type[it, i] == "..." ? "..." : one_param(param_type[it, i], param_name[it, i]))
    return s (params[it] ? "" : "void") ")"
}
function one_param(type, name,    at) {
    if (at = index(type, "(*)")) return substr(type, 1, at + 1) name substr(type, at + 2)
    if (at = index(type, "[")) return substr(type, 1, at - 1) " " name substr(type, at)
    return type (type ~ /\*$/ ? "" : " ") name
}
function threads_text(it) {
    return thread[it] == "ANY" ? "any thread" : thread[it] == "EACH" ? "any number of threads, each with a context of its own" : "one thread at a time"
}
function md_escape(s) { gsub(/</, "\\&lt;", s); gsub(/[|*]/, "\\\\&", s); return s }
function form_md(    it, i, last, sect) {
    print "# The interface\n\nMade from the headers by `scripts/api.awk`; the same as data is `onx.json` (see [bindings.md](bindings.md)). What callers can rely on: [abi.md](abi.md).\n"
    for (it = 1; it <= items; it++) {
        if (item_header[it] != last) { last = item_header[it]; sect = ""; print "## onx/" last "\n\n" md_escape(about[last]) "\n" }
        if (item_section[it] != sect) { sect = item_section[it]; if (sect != "") print "### " md_escape(sect) "\n" }
        if (item_kind[it] == "function") { print "**`" declaration(it) "`**\n"; if (item_doc[it] != "") print md_escape(item_doc[it]) "\n"; print "*Threads: " threads_text(it) "." (errors_of(it) != "" ? " Fails with " md_escape(errors_of(it)) "." : "") "*\n" }
        else if (item_kind[it] == "struct" && !message[it]) {
            print "**struct `" item_name[it] "`**" (item_doc[it] == "" ? "" : ": " md_escape(item_doc[it])) "\n\n| member | type | |\n|---|---|---|"
            for (i = 1; i <= members[it]; i++) print "| `" member_name[it, i] "` | `" member_type[it, i] "` | " md_escape(member_doc[it, i]) " |"
            print ""
        } else if (item_kind[it] == "enum") {
            print "**enum" (item_name[it] == "" ? "" : " `" item_name[it] "`") "**" (item_doc[it] == "" || item_doc[it] ~ /^----/ ? "" : ": " md_escape(item_doc[it])) "\n"
            for (i = 1; i <= values[it]; i++) print "- `" value_name[it, i] "`" (value_doc[it, i] == "" ? "" : ": " md_escape(value_doc[it, i]))
            print ""
        }
    }
}
function roff(s) { gsub(/\\/, "\\\\e", s); gsub(/-/, "\\\\-", s); if (s ~ /^[.\x27]/) s = "\\&" s; return s }
function form_man(    it, i, last, out, page) {
    for (it = 1; it <= items; it++) {
        if (item_header[it] != last) {
            last = item_header[it]; page = last; sub(/\.h$/, "", page); out = dir "/onx_" page ".3"
            print ".TH ONX_" toupper(page) " 3 \"\" \"onx " version "\" \"Library functions\"\n.SH NAME\nonx_" page " \\- " roff(first_sentence(about[last])) "\n.SH SYNOPSIS\n.B #include <onx/" last ">\n.SH DESCRIPTION\n" roff(about[last]) >out
        }
        if (item_kind[it] == "function") {
            print ".SS " item_name[it] "\n.B " roff(declaration(it)) ";\n.PP\n" roff(item_doc[it]) "\n.PP\nThreads: " threads_text(it) "." >out
            if (errors_of(it) != "") print "Fails with " roff(errors_of(it)) "." >out
            # A function that is named as its header has that page.
            if (item_name[it] == "onx_" page) continue
            print ".so man3/onx_" page ".3" >(dir "/" item_name[it] ".3"); close(dir "/" item_name[it] ".3")
        } else if (item_kind[it] == "struct" && !message[it]) {
            print ".SS struct " item_name[it] "\n" roff(item_doc[it]) >out
            for (i = 1; i <= members[it]; i++) print ".TP\n.B " member_name[it, i] " \\fR(" roff(member_type[it, i]) ")\n" roff(member_doc[it, i]) >out
        } else if (item_kind[it] == "enum" && values[it]) {
            print ".SS " (item_name[it] == "" ? "Numbers" : "enum " item_name[it]) "\n" roff(item_doc[it] ~ /^----/ ? "" : item_doc[it]) >out
            for (i = 1; i <= values[it]; i++) print ".TP\n.B " value_name[it, i] "\n" roff(value_doc[it, i]) >out
        }
    }
}
function first_sentence(s) { sub(/^[a-z_.]+ - /, "", s); sub(/[.:;] .*$/, "", s); sub(/[.:]$/, "", s); return s }
END {
    flush_file()
    for (it = 1; it <= items; it++) if (item_kind[it] == "struct") is_struct[item_name[it]] = 1
    # Each inline function has an exported twin for those who cannot use it.
    for (it = 1; it <= items; it++) if (inlined[it]) { name = item_name[it]; sub(/^onx_/, "onx_ffi_", name); if (!(name in seen)) fail(item_name[it] " has no exported twin " name) }
    for (it = 1; it <= items; it++) if (item_kind[it] == "function" && !inlined[it] && param_name[it, params[it]] == "..." && !((item_name[it] "_text") in seen)) fail(item_name[it] " has no twin " item_name[it] "_text without ...")
    if (form == "c") form_c()
    else if (form == "md") form_md()
    else if (form == "man") form_man()
    else fail("form is c, md or man")
    exit failed
}
