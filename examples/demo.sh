#!/bin/sh
# demo.sh ONX: a small convolutional network, from its description to its answers.
set -eu
onx=$1
"$onx" --version
