# Images as inputs: decoded, resized, scaled and laid out as the model or the command line requires.
. "$ONX_SOURCE_DIR/tests/lib.sh"
model() { # NAME TYPE [HEAD]
    printf '<ir_version: 10, opset_import: ["" : 21]%s>\ng (%s x) => (%s y) { y = Identity (x) }\n' "${3-}" "$2" "$2" >$1.onnxtxt
}
model nchw 'float[N,3,H,W]'
printf 'P3\n2 2\n255\n255 0 51\n0 255 102\n10 20 30\n1 2 3\n' >p.ppm
"$ONX" run nchw.onnxtxt -i x=p.ppm >out 2>err || { grep -q 'left out of this build' err && images_are_missing=1; }
if [ -n "${images_are_missing-}" ]; then
    says err "p.ppm: "
    says err "needs leptonica"
    skip "this build has no leptonica"
fi

# ---- layout, colours, range
says out "y  float[1,3,2,2] 1 0 0.0392157 "
says err "image: x from p.ppm, 2 by 2, rgb, nchw, 0 to 1"
expect 0 "$ONX" run nchw.onnxtxt -i x=p.ppm --full --image-format bgr --image-range 0:255
says out "51"
expect 0 "$ONX" run nchw.onnxtxt -i x=p.ppm --image-format bgr --image-range 0:255
says out "y  float[1,3,2,2] 51 102 30 3 "
expect 0 "$ONX" run nchw.onnxtxt -i x=p.ppm --mean 0.5,0,0 --std 0.5,1,0.25
says out "y  float[1,3,2,2] 1 -1 -0.92"
says err "mean 0.5,0,0, std 0.5,1,0.25"
expect 0 "$ONX" run nchw.onnxtxt -i x=p.ppm --dim N=2
says out "y  float[2,3,2,2]"
model nhwc 'uint8[1,?,?,3]'
expect 0 "$ONX" run nhwc.onnxtxt -i x=p.ppm
says out "y  uint8[1,2,2,3] 255 0 51 0 "
model open 'uint8[A,B,C,D]'
expect 0 "$ONX" run open.onnxtxt -i x=p.ppm --image-layout nhwc
says out "y  uint8[1,2,2,3] 255 0 51 0 "
expect 0 "$ONX" run open.onnxtxt -i x=p.ppm
says out "y  uint8[1,3,2,2] 255 0 10 1 "
model small 'int8[3,2,2]'
expect 0 "$ONX" run small.onnxtxt -i x=p.ppm --image-range=-128:127
says out "y  int8[3,2,2] 127 -128 "
model half 'float16[2,2,3]'
expect 0 "$ONX" run half.onnxtxt -i x=p.ppm --image-range 0:255
says out "y  float16[2,2,3] 255 0 51 0 "
model gray 'float[2,2]'
expect 0 "$ONX" run gray.onnxtxt -i x=p.ppm --image-range 0:255
says out "y  float[2,2] 82 161 18 2 "
model gray1 'double[N,1,H,W]'
expect 0 "$ONX" run gray1.onnxtxt -i x=p.ppm --image-range 0:255 --mean 2
says out "y  double[1,1,2,2] 80 159 16 0 "
says err "gray, nchw"
model bytes 'uint8[N]' # the model decodes it
expect 0 "$ONX" run bytes.onnxtxt -i x=p.ppm
says out "y  uint8[$(wc -c <p.ppm)] 80 51 10 50 "
# what the model says
model said 'float[N,3,H,W]' ', metadata_props: ["Image.BitmapPixelFormat": "Bgr8", "Image.NominalPixelRange": "NominalRange_0_255"]'
expect 0 "$ONX" run said.onnxtxt -i x=p.ppm
says out "y  float[1,3,2,2] 51 102 30 3 "
expect 0 "$ONX" run said.onnxtxt -i x=p.ppm --image-format rgb --image-range 0:1
says out "y  float[1,3,2,2] 1 0 0.0392157 "

# ---- sizes; the numbers are those of PyTorch's antialiased bilinear interpolation
{
    printf 'P2\n8 4\n255\n'
    i=0
    while [ $i -lt 32 ]; do
        echo $((i * i % 251))
        i=$((i + 1))
    done
} >g.pgm
model sized 'float[1,1,2,3]'
sized() { expect 0 "$ONX" run sized.onnxtxt -i x=g.pgm --image-range 0:255 "$@"; }
sized --full
says out 42.8270721
says out 155.447388
sized --resize crop
says out "y  float[1,1,2,3] 37.3061 63.7143 100.571 70.1225 "
says err "4 by 8 (crop to 2 by 3)"
model tall 'float[1,1,4,3]'
expect 0 "$ONX" run tall.onnxtxt -i x=g.pgm --image-range 0:255 --resize pad --full
says out "[[[[0, 0, 0],"
says out "42.8270721"
says out "155.447388"
model free 'float[N,1,H,W]'
expect 0 "$ONX" run free.onnxtxt -i x=g.pgm
says out "y  float[1,1,4,8]"
expect 0 "$ONX" run free.onnxtxt -i x=g.pgm --image-size 3x5
says out "y  float[1,1,3,5]"
expect 0 "$ONX" run free.onnxtxt -i x=g.pgm --dim W=4 # the other keeps the ratio
says out "y  float[1,1,2,4]"
expect 0 "$ONX" run free.onnxtxt -i x=g.pgm --shape x=2x1x2x2
says out "y  float[2,1,2,2]"
expect 0 "$ONX" bench free.onnxtxt -i x=g.pgm --seconds 0
expect 0 "$ONX" compare free.onnxtxt -i x=g.pgm --kernels plain

# ---- mistakes
expect 1 "$ONX" run sized.onnxtxt -i x=g.pgm --resize none
says err "g.pgm is 4 by 8, and input \"x\" 2 by 3"
bad() { # ARGUMENTS...
    expect 2 "$ONX" run "$@"
    [ "$(grep -c 'error:' err)" -eq 1 ] || fail "$* is said more than once"
}
for value in 1,2 1, , a 1,2,3,4 nan inf 0x1 1e999 ""; do
    bad nchw.onnxtxt -i x=p.ppm --mean "$value"
    bad nchw.onnxtxt -i x=p.ppm --std "$value"
done
bad nchw.onnxtxt -i x=p.ppm --std 1,0,1
for value in 1 1: :1 1:2:3 a:b nan:1; do bad nchw.onnxtxt -i x=p.ppm --image-range $value; done
for value in 1 0x3 3x0 -1x2 3x 3x4x 99999999999999999999x1; do bad nchw.onnxtxt -i x=p.ppm --image-size $value; done
bad sized.onnxtxt -i x=g.pgm --image-size 3x3
bad nchw.onnxtxt -i x=p.ppm --image-layout hwc
bad nchw.onnxtxt -i x=p.ppm --image-format gray
bad gray1.onnxtxt -i x=p.ppm --mean 1,2,3
bad nchw.onnxtxt --random --resize crop
says err "no input is given as one"
bad nchw.onnxtxt -i x=none.png
model four 'float[1,4,2,2]'
bad four.onnxtxt -i x=p.ppm
says err "it has 4 channels"
model flat 'float[3]'
bad flat.onnxtxt -i x=p.ppm
model flags 'bool[3,2,2]'
bad flags.onnxtxt -i x=p.ppm
model none 'float[1,3,0,2]'
bad none.onnxtxt -i x=p.ppm
: >empty.png
echo text >text.png
head -c 20 p.ppm >cut.ppm
for file in empty.png text.png; do
    expect 1 "$ONX" run nchw.onnxtxt -i x=$file
    says err "$file cannot be decoded as an image"
done
"$ONX" run nchw.onnxtxt -i x=cut.ppm >out 2>err # some pixels, or none
[ $? -le 1 ] || fail "a file that is cut short"
printf 'P2\n1 1\n9\n1\n' >few.pgm # fewer grays than there are, about which leptonica chats
"$ONX" run free.onnxtxt -i x=few.pgm >out 2>err
grep -q maxval err && fail "leptonica prints"
printf '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\011\000\000\000\011\010\002\000\000\000\157\363\221\107\000\000\000\024\111\104\101\124\170\234\143\144\144' >cut.png # ends within the pixels, about which libpng writes to standard error
"$ONX" run nchw.onnxtxt -i x=cut.png >out 2>err
[ $? -le 1 ] || fail "a file that is cut short"
grep -v '^onx run: ' err && fail "a library's message is not part of ours"
says err "cut.png cannot be decoded as an image, or is damaged: "
printf 'P6\n60000 60000\n255\n' >huge.ppm # a header that lies
expect 1 "$ONX" run nchw.onnxtxt -i x=huge.ppm --max-memory 64M
says err "huge.ppm: graph.node"
expect 1 "$ONX" run nchw.onnxtxt -i x=p.ppm --image-size 60000x60000 --max-memory 64M
says err "memory"
# It is said of the image, and not of a place in the text of the model.
says err "p.ppm: graph.node"
! grep -q "nchw.onnxtxt:" err || fail "an error about an image is placed in the model"
done_testing
