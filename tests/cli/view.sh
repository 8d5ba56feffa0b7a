# onx view: the contents of the page, and exit statuses. Its appearance is tested in tests/browser.
. "$ONX_SOURCE_DIR/tests/lib.sh"

cat >model.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[N,4] x, bool c) => (float[N,4] y)
<float[20] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}, int64[2] shape = {-1,4}>
{
  r = Reshape (w, shape)
  s = ReduceSum (r)
  a = Add (x, s)
  i = If <then_branch = t () => (float[N,4] u) { u = Exp (a) }, else_branch = e () => (float[N,4] v) { v = Neg (a) }> (c)
  y = my.twice (i)
}
<domain: "my", opset_import: ["" : 21]>
twice (p) => (q) { q = Add (p, p) }
END

cat >constants.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (float[4] x) => (float[2,2] y)
<int64[2] shape = {-1,4}>
{
  a = Reshape (x, shape)
  b = Constant <value = int64[2] {0, 1}> ()
  c = Constant <value_float = 2.5> ()
  d = Constant <value = float[2,3] {1,2,3,4,5,6}> ()
  e = Constant <value_string = "word"> ()
  f = Constant <value = int8[5] {1,2,3,4,5}> ()
  y = Reshape (a, b)
}
END

# The name of the page follows from that of the model.
mkdir -p folder
cp model.onnxtxt folder/network.onnxtxt
expect 0 "$ONX" view folder/network.onnxtxt
says err "onx view: network.html"
[ -s network.html ] || fail "no page was written"
expect 0 "$ONX" view model.onnxtxt -o -
mv out page.html
grep -q '"format": 1' page.html || fail "no data in the page"
for text in '"kind": "function"' '"parent_box": ' 'float\[N,4\]' '"histogram": \[' '"summary": ' '"ReduceSum"'; do
    grep -q "$text" page.html || fail "no $text in the page"
done
# Nothing comes from elsewhere.
! grep -n 'https\?://' page.html | grep -v 'http://www.w3.org/2000/svg' || fail "the page names other places"
! grep -q '{{' page.html || fail "a mark of the page was not filled in"

expect 0 "$ONX" view model.onnxtxt -o less.html --no-weights
! grep -q '"histogram": \[' less.html || fail "histograms in spite of --no-weights"

# The same model gives the same page.
expect 0 "$ONX" view model.onnxtxt -o again.html
same page.html again.html

# No text of a model is markup: there are the elements of the page and no more.
cat >hostile.textproto <<'END'
ir_version: 10 producer_name: "</script><script>x</script>" opset_import { version: 21 }
metadata_props { key: "<!--" value: "<script>" }
graph { name: "</SCRIPT >" doc_string: "<img src=x onerror=x>"
  node { name: "</script>" op_type: "Relu" input: "x" output: "<b>" }
  node { name: "\001\377\"\\" op_type: "<svg onload=x>" input: "<b>" output: "y" doc_string: "<!--<script>" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "</script>" } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } } } }
END
expect 0 "$ONX" view hostile.textproto
[ "$(grep -oi '<script' hostile.html | wc -l)" -eq 2 ] || fail "a script of the model is in the page"
[ "$(grep -oi '</script' hostile.html | wc -l)" -eq 2 ] || fail "the model ends a script"
! grep -qi '<img\|<!--\|<b>' hostile.html || fail "markup of the model is in the page"

# The drawing alone: well-formed, without markup of the model.
expect 0 "$ONX" view hostile.textproto -o hostile.svg
! grep -qi '<script\|<b>\|<!--\|onload=x>' hostile.svg || fail "markup of the model is in the drawing"
grep -q '&#60;svg onload=x&#62;' hostile.svg || fail "the title of a node is not in the drawing"
expect 0 "$ONX" view model.onnxtxt -o model.svg
for text in ReduceSum If twice 'data 20'; do
    grep -q ">$text</text>" model.svg || fail "no $text in the drawing"
done
for text in 'shape = \[-1,4\]' '= \[0,1\]' '= 2.5' 'float 2×3' '= word' 'int8 5'; do
    expect 0 "$ONX" view constants.onnxtxt -o constants.svg
    grep -q ">$text</text>" constants.svg || fail "no $text in the drawing"
done
# Constants of a model with many texts, whichever of them makes the list of texts longer.
for first in 0 1 2 3; do
    {
        echo '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Neg (x)'
        [ $first -lt 1 ] || echo ' a = Abs (x)'
        [ $first -lt 2 ] || echo ' b = Exp (x)'
        [ $first -lt 3 ] || echo ' c = Sin (x)'
        for i in $(seq 300); do echo " c$i = Constant <value_ints = [$i, $i]> ()"; done
        echo '}'
    } >many.onnxtxt
    expect 0 "$ONX" view many.onnxtxt -o many.svg
    [ "$(grep -c '>= \[[0-9]*, [0-9]*\]</text>' many.svg)" -eq 300 ] || fail "a constant is not in the drawing"
done
# The same for Graphviz: boxes and arrows, and no text of a model that ends a string.
expect 0 "$ONX" view model.onnxtxt -o model.dot
for text in '  b2 [label="Reshape\ndata 20\nshape = [-1,4]"' '  b2 -> b3;' '}'; do
    grep -qF -e "$text" model.dot || fail "no $text for Graphviz"
done
cat >quotes.textproto <<'END'
ir_version: 10 opset_import { version: 21 }
graph { name: "g"
  node { name: 'quote " \\' op_type: 'a\\n"]; b0 -> b0 [label="\\' input: "x" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 } } } output { name: "y" type { tensor_type { elem_type: 1 } } } }
END
expect 0 "$ONX" view quotes.textproto -o quotes.dot
grep -qF '[label="a\\n&#34;]; b0 -&#62; b0 [label=&#34;\\", tooltip="quote &#34; \\"' quotes.dot || fail "a name ends a string"
[ "$(grep -c '<g>' model.svg)" -eq "$(grep -c '</g>' model.svg)" ] || fail "groups that do not end"
# Browsers open connections that they say nothing on; nobody waits for those, nor for half a request.
if command -v python3 >/dev/null; then
    python3 - "$ONX" <<'END' || fail "a request waits for connections that say nothing"
import socket, subprocess, sys, time

server = subprocess.Popen([sys.argv[1], "view", "model.onnxtxt", "--serve"], stdout=subprocess.PIPE, text=True)
try:
    port = int(server.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    for one in silent[30:]:
        one.sendall(b"GET / HTTP/1.1")
    start = time.monotonic()
    for turn in range(3):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            for part in b"GET / HTTP/1.1\r\n", b"Host: localhost:%d\r\n" % port, b"\r\n":
                client.sendall(part)
            assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert time.monotonic() - start < 14, "%.1f s" % (time.monotonic() - start)
finally:
    server.kill()
END
fi
expect 2 "$ONX" view model.onnxtxt --port 80
says err "--port goes with --serve"
expect 2 "$ONX" view model.onnxtxt --serve -o x.html
expect 2 "$ONX" view - --serve <model.onnxtxt

cat >loop.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
g (float[2] x) => (float[2] y) { y = my.f (x) }
<domain: "my", opset_import: ["" : 21, "my" : 1]>
f (p) => (q) { q = my.f (p) }
END

# Two models, and what differs.
sed 's/data = 20//; s/u = Exp (a)/u = Abs (a)/; s/y = my.twice (i)/y = Neg (i)/' model.onnxtxt >other.onnxtxt
expect 0 "$ONX" view model.onnxtxt --against other.onnxtxt -o two.html
for text in '"differences": \[' '"a": "..Exp.."' '"file": "other.onnxtxt"'; do
    grep -q "$text" two.html || fail "no $text in the page of two models"
done
expect 0 "$ONX" view model.onnxtxt --against model.onnxtxt -o same.html
! grep -q '"what": ' same.html || fail "a model differs from itself"
expect 2 "$ONX" view model.onnxtxt --against missing.onnx -o none.html
[ ! -e none.html ] || fail "a page of one model where two were asked for"

# A run: the times of its nodes.
expect 0 "$ONX" view model.onnxtxt --profile --dim N=3 -o run.html
says err "made up: x float[3,4]"
grep -q '"run_ms": ' run.html || fail "no times in the page"
expect 1 "$ONX" view loop.onnxtxt --profile -o none.html
[ ! -e none.html ] || fail "times of a model that cannot run"

# What is wrong is on the page; a model that can be read is no failure.
cat >wrong.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,3] x) => (float[2,3] y) { a = Nothing (x) y = Add (a, gone) }
END
expect 0 "$ONX" view wrong.onnxtxt
says err "wrong.html shows the model and what is wrong with it: "
grep -q '"severity": "error"' wrong.html || fail "no findings in the page"
expect 0 "$ONX" view wrong.onnxtxt -o unchecked.html --no-check
! grep -q '"severity": "error"' unchecked.html || fail "findings in spite of --no-check"
printf '<ir_version: 10>\ng (float[2 x) => (float y) { y = Relu(x }\n' >broken.onnxtxt
expect 1 "$ONX" view broken.onnxtxt
says err "broken.html says why there is no model to show"
says err "error: "
grep -q '"severity": "error"' broken.html || fail "no findings in the page of a broken file"
printf '\072\377\377\377\377\377\377\001noise' >noise.onnx
expect 1 "$ONX" view noise.onnx

expect 1 "$ONX" view broken.onnxtxt -o broken.svg
[ ! -e broken.svg ] || fail "a drawing of a file that cannot be read"

# Without a file there is no page, and none replaces its model.
expect 2 "$ONX" view missing.onnx
[ ! -e missing.html ] || fail "a page without a model"
expect 2 "$ONX" view model.onnxtxt -o model.onnxtxt
same model.onnxtxt folder/network.onnxtxt

# Depth, width, functions that call themselves: pages all the same.
{
    echo '<ir_version: 10, opset_import: ["" : 21]>'
    echo 'g (float[2] x) => (float[2] v3000) { v0 = Relu (x)'
    awk 'BEGIN { for (i = 1; i <= 3000; i++) printf "v%d = Relu (v%d)\n", i, i - 1 }'
    echo '}'
} >deep.onnxtxt
expect 0 "$ONX" view deep.onnxtxt
expect 0 "$ONX" view loop.onnxtxt
says err "2 errors"

done_testing
