# calls.awk - makes calls.inc from the public headers: each public function as one that calls it with the values of
# calls.def, of which one argument may be spoiled. A declaration whose argument has no row there ends the build.
# awk -f calls.awk calls.def include/onx/*.h
function fail(why) { print "calls.awk: " why >"/dev/stderr"; failed = 1 }
function trim(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }
FILENAME ~ /calls\.def$/ {
    if (/^[ \t]*(#|$)/) next
    if (!match($0, / = /)) { fail("calls.def: no \" = \": " $0); next }
    value[trim(substr($0, 1, RSTART - 1))] = trim(substr($0, RSTART + 3))
    next
}
{ text = text $0 "\n" }
function split_arguments(list, out,    n, depth, i, c, word) {
    n = 0; depth = 0; word = ""
    for (i = 1; i <= length(list); i++) {
        c = substr(list, i, 1)
        if (c == "(") depth++
        if (c == ")") depth--
        if (c == "," && !depth) { out[++n] = trim(word); word = "" } else word = word c
    }
    if (trim(word) != "" && trim(word) != "void") out[++n] = trim(word)
    return n
}
function emit(head, list, remark,    n, i, name, type, arg, key, base, kind, result, spoils, passed, variadic, decl, bears, v, made) {
    head = trim(head); if (head ~ /^ONX_API / && head !~ /^ONX_API ONX_(ANY|OWN|EACH)_THREAD /) fail(head ": the declaration does not say which threads may call it (onx/base.h)")
    sub(/^(ONX_API|static inline) /, "", head); sub(/^ONX_[A-Z]+_THREAD /, "", head)
    match(head, /[A-Za-z0-9_]+$/); name = substr(head, RSTART); result = trim(substr(head, 1, RSTART - 1))
    n = split_arguments(list, arg)
    if (name in seen) return
    seen[name] = 1
    print "static void call_" name "(const fixture *f, int spoil, int variant, outcome *o)\n{\n    (void)f;\n    (void)spoil;\n    (void)variant;\n    (void)o;"
    passed = ""; rows = ""; spoils = ""; variadic = 0; made = 0
    for (i = 1; i <= n; i++) {
        if (arg[i] == "...") { variadic++; passed = passed ", \"x\""; continue }
        decl = arg[i]
        if (decl ~ /\(\*[a-z_]+\)/) { match(decl, /\(\*[a-z_]+\)/); pname = substr(decl, RSTART + 2, RLENGTH - 3); type = "function"; sub(/\(\*[a-z_]+\)/, "(*a" i ")", decl) }
        else {
            array = sub(/\[[^\]]*\]$/, "", decl)
            match(decl, /[A-Za-z0-9_]+$/); pname = substr(decl, RSTART); type = trim(substr(decl, 1, RSTART - 1)); if (array) type = type " *"
            decl = type (type ~ /\*$/ ? "" : " ") "a" i
        }
        if ((name "." pname) in value) v = value[name "." pname]
        else if ((type " " pname) in value) v = value[type " " pname]
        else if (type in value) v = value[type]
        else { fail(name ": no value for `" arg[i] "`: a row \"" name "." pname " = ...\" or \"" type " = ...\" has to be in calls.def"); v = "0" }
        used[name "." pname] = 1
        print "    " decl " = " v ";"
        passed = passed (i > 1 ? ", " : "") "a" i
        base = type; sub(/^const /, "", base)
        bears = base ~ /^onx_(ctx|doc|arena|value|infer|registry|session|trainer|generator|tokenizer|index|text_places|op_call|prepare|work) \*$/
        made = made || base == "onx_arena *"
        if (type == "function" || type ~ /\*$/) {
            kind = "POINTER"
            if (remark ~ /NULL is allowed/ || pname == "user") kind = "MAY_BE_NULL"
            if (remark ~ ("`" pname "`[^.:;]* may be NULL")) kind = "MAY_BE_NULL"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = NULL;\n"
        } else if (type in enumeration) {
            kind = "ENUM"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = (" type ")(variant ? 9999 : -1);\n"
        } else if (type == "onx_str") {
            kind = "OTHER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = variant ? onx_str_of(\"\\xff\\x01\") : onx_str_make(NULL, 0);\n"
        } else if (type == "onx_sink") {
            kind = "POINTER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i ".write = NULL;\n"
        } else if (type ~ /^(onx_limits|onx_bytes)$/) {
            kind = "OTHER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        memset(&a" i ", 0, sizeof a" i ");\n"
        } else if (type == "bool") {
            kind = "OTHER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = !a" i ";\n"
        } else if (type ~ /^(float|double)$/) {
            kind = "OTHER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = variant ? (" type ")1e300 * (" type ")1e300 : (" type ")NAN;\n"
        } else if (pname ~ /(count|size|room|len|expected)$/) { # how much there is at a pointer: no more may be said
            kind = "OTHER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = 0;\n"
        } else {
            kind = "NUMBER"
            spoils = spoils "    if (spoil == " i - 1 ")\n        a" i " = (" type ")(variant ? " (type ~ /^int64/ ? "INT64_MIN" : "-2") " : " (type ~ /^int64/ ? "INT64_MAX" : type ~ /^int/ ? "INT32_MAX" : "-1") ");\n"
        }
        rows = rows "{ \"" pname "\", " kind ", " (bears ? "true" : "false") " }, "
    }
    printf "%s", spoils
    if (result == "onx_status") print "    o->status = " name "(" passed ");"
    else if (result ~ /\*$/) print "    o->made = " name "(" passed ");"
    else print "    (void)" name "(" passed ");"
    print "}"
    table = table "    { \"" name "\", call_" name ", " (result == "onx_status" ? ((name ".returns") in value ? (value[name ".returns"] == "later" ? "TOLD_LATER" : "ANY_STATUS") : "STATUS") : result ~ /\*$/ && made ? "MADE" : "OTHER_RESULT") ", " n - variadic ", { " (rows == "" ? "{ NULL, OTHER, false }" : rows) "} },\n"
}
END {
    # Types of enumerations, of all headers.
    rest = text
    while (match(rest, /typedef enum [a-z_]+ /)) { t = substr(rest, RSTART + 13, RLENGTH - 14); enumeration[t] = 1; rest = substr(rest, RSTART + RLENGTH) }
    remark = ""
    while (text != "") {
        if (match(text, /^[ \t\n]+/)) {
            # A comment speaks of what follows it at once.
            if (substr(text, 1, RLENGTH) ~ /\n[ \t]*\n/) remark = ""
            text = substr(text, RLENGTH + 1); continue
        }
        if (substr(text, 1, 2) == "/*") { at = index(text, "*/"); remark = trim(substr(text, 3, at - 3)); gsub(/ \* /, " ", remark); text = substr(text, at + 2); continue }
        if (substr(text, 1, 1) == "#") { while (match(text, /^[^\n]*\\\n/)) text = substr(text, RLENGTH + 1); sub(/^[^\n]*/, "", text); continue }
        at = match(text, /[;{]/)
        if (!at) break
        head = substr(text, 1, at - 1)
        if (head ~ /\/\*/) { at = index(text, "/*"); c = index(text, "*/"); text = substr(text, 1, at - 1) substr(text, c + 2); continue }
        text = substr(text, at)
        if (head ~ /^(ONX_API|static inline)[ \n]/ && match(head, /\(/)) {
            list = substr(head, RSTART + 1); head = substr(head, 1, RSTART - 1)
            sub(/\)[ \n]*(ONX_PRINTF\([^)]*\))?[ \n]*$/, "", list)
            emit(head, list, remark)
        }
        remark = ""
        if (substr(text, 1, 1) == "{") { # the body of an inline function, struct or extern "C"
            if (head ~ /extern/) { text = substr(text, 2); continue }
            depth = 0
            while (match(text, /[{}]/)) {
                depth += substr(text, RSTART, 1) == "{" ? 1 : -1; text = substr(text, RSTART + 1)
                if (!depth) break
            }
        } else text = substr(text, 2)
    }
    for (key in value) if (key ~ /^onx_[a-z0-9_]+\.[a-z_]+$/ && key !~ /\.returns$/ && !(key in used)) fail("calls.def: " key " is no argument")
    print "static const function functions[] = {\n" table "};"
    exit failed
}
