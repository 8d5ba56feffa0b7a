# Hostile models: the cost of processing them is bounded by their size, and terminals show their texts safely.
. "$ONX_SOURCE_DIR/tests/lib.sh"

# ---- functions that call each other twice, 60 deep: 2^60 calls of functions that contain only calls
{
    echo 'ir_version: 8 opset_import { version: 17 } opset_import { domain: "d" version: 1 }'
    echo 'graph { name: "g" node { op_type: "F0" domain: "d" input: "x" output: "y" }'
    echo 'input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }'
    echo 'output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } } }'
    i=0
    while [ $i -lt 60 ]; do
        j=$((i + 1))
        echo "functions { name: \"F$i\" domain: \"d\" input: \"a\" output: \"b\" opset_import { domain: \"d\" version: 1 }"
        echo "node { op_type: \"F$j\" domain: \"d\" input: \"a\" output: \"t\" }"
        echo "node { op_type: \"F$j\" domain: \"d\" input: \"t\" output: \"b\" } }"
        i=$j
    done
    echo 'functions { name: "F60" domain: "d" input: "a" output: "a" }'
} >calls.textproto
expect 1 timeout 60 "$ONX" run calls.textproto --random
says err "nodes and calls"

# ---- 10,000 functions called once each, and a name made 40,000 times: no list is walked for each node
awk 'BEGIN {
    print "ir_version: 8 opset_import { version: 17 } opset_import { domain: \"d\" version: 1 } graph { name: \"g\""
    print "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }"
    for (i = 0; i < 10000; i++) printf "node { op_type: \"F%d\" domain: \"d\" input: \"x\" output: \"y%d\" }\n", i, i
    print "output { name: \"y1\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } } }"
    for (i = 0; i < 10000; i++) printf "functions { name: \"F%d\" domain: \"d\" input: \"a\" output: \"b\" opset_import { version: 17 } node { op_type: \"Relu\" input: \"a\" output: \"b\" } }\n", i
}' >many.textproto
expect 0 timeout 60 "$ONX" run many.textproto --random
awk 'BEGIN {
    print "ir_version: 8 opset_import { version: 17 } graph { name: \"g\""
    print "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }"
    for (i = 0; i < 40000; i++) print "node { op_type: \"Relu\" input: \"x\" output: \"y\" }"
    print "output { name: \"y\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } } }"
}' >twice.textproto
expect 0 timeout 60 "$ONX" infer twice.textproto --list

# ---- a name of a megabyte, cut where it is too wide
{
    printf 'ir_version: 8 graph { name: "'
    head -c 1000000 /dev/zero | tr '\0' n
    printf 'end" input { name: "'
    head -c 1000000 /dev/zero | tr '\0' n
    echo 'end" type { tensor_type { elem_type: 1 } } } }'
} >long.textproto
expect 0 timeout 30 "$ONX" info long.textproto
says out nend

# ---- strings that would recolour, retitle or reorder a terminal; a pipe gets them as they are
printf '%s' 'ir_version: 8 producer_name: "\033[31mred\007\302\23331m\342\200\256\303\251" graph { name: "g" }' >loud.textproto
expect 0 "$ONX" show loud.textproto
says out "$(printf '\033[31mred')"
# A container may have no terminals to offer.
if script -qec true /dev/null >/dev/null 2>&1; then
    for format in onnxtxt textproto json; do
        expect 0 script -qec "'$ONX' show --format $format loud.textproto" /dev/null
        tr -d '\r\n\t' <out | LC_ALL=C grep -q "$(printf '[\001-\037]')" && fail "a control character was shown as $format"
        grep -q "$(printf '\342\200\256')" out && fail "a direction mark was shown as $format"
        says out red
    done
    expect 0 script -qec "'$ONX' show loud.textproto" /dev/null
    says out "$(printf '\\x1b[31mred\\x07\\xc2\\x9b31m\\xe2\\x80\\xae\303\251')"
else
    echo "terminals are not tested: there is no script(1)"
fi

# ---- a trace is JSON whatever the nodes are called, and long names are cut between characters
{
    printf '%s' 'ir_version: 8 opset_import { version: 17 } graph { name: "g" node { op_type: "Relu" input: "x" output: "y" name: "'
    printf '%s' 'q\"uo\\te\001\n\033[31m\177\302\233 \377\300\200\355\240\200'
    printf '%s' '" } node { op_type: "Relu" input: "y" output: "z" name: "a'
    i=0
    while [ $i -lt 200 ]; do
        printf '%s' '\360\237\230\200'
        i=$((i + 1))
    done
    echo '" } input { name: "x" type { tensor_type { elem_type: 1 } } } output { name: "z" type { tensor_type { elem_type: 1 } } } }'
} >names.textproto
expect 0 "$ONX" run names.textproto --random --profile --trace trace.json --no-optimize
says trace.json 'q\"uo\\te\u0001\u000a\u001b[31m\u007f\u009b \ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"'
[ "$(grep -c ufffd trace.json)" -eq 1 ] || fail "a name was cut within a character"
LC_ALL=C tr -d '\n' <trace.json | LC_ALL=C grep -q "$(printf '[\001-\037\177]')" && fail "a control character is in the trace"
if command -v python3 >/dev/null; then
    expect 0 python3 -c 'import json; assert len(json.load(open("trace.json", encoding="utf-8"))["traceEvents"]) == 2'
fi

# JSON is for programs, but people read it on a terminal too: C1 controls are escaped as C0 ones are.
printf '<ir_version: 10, producer_name: "a\302\233b\303\251", opset_import: ["" : 21]> g () => () {}' >c1.onnxtxt
expect 0 "$ONX" info --json c1.onnxtxt
says out 'a\u009bb'
done_testing
