# debian_changelog.awk - converts CHANGELOG.md to the format of a Debian changelog:
#   awk -v package=onx -v release=1 -v who="Name <mail>" -v date="Thu, 01 Jan 1970 00:00:00 +0000" -f scripts/debian_changelog.awk CHANGELOG.md
# A heading "## VERSION, ..." begins an entry, "### ..." a group of it, "- ..." an item. Of a link only the text is kept.
function finish() { if (version != "") printf "\n -- %s  %s\n", who, date }
# The words of a text in lines of at most 79 columns; the first line begins with `first`, the others with `rest`.
function fill(text, first, rest,    n, word, i, line) {
    n = split(text, word, " ")
    line = first word[1]
    for (i = 2; i <= n; i++) {
        if (length(line) + 1 + length(word[i]) > 79) {
            print line
            line = rest word[i]
        } else {
            line = line " " word[i]
        }
    }
    print line
}
{ while (match($0, /\[[^]]*\]\([^)]*\)/)) {
    link = substr($0, RSTART, RLENGTH)
    sub(/^\[/, "", link); sub(/\]\(.*/, "", link)
    $0 = substr($0, 1, RSTART - 1) link substr($0, RSTART + RLENGTH)
} }
/^## / {
    finish()
    if (version != "") print ""
    version = $2; sub(/,$/, "", version)
    printf "%s (%s-%s) unstable; urgency=medium\n", package, version, release
    next
}
/^### / && version != "" { sub(/^### /, ""); printf "\n"; fill($0 " ]", "  [ ", "    "); group = 1; next }
/^- / && version != "" { if (!group) { print ""; group = 1 } sub(/^- /, ""); fill($0, "  * ", "    ") }
END { finish() }
