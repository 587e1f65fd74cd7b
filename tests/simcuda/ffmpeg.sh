#!/bin/sh
# ffmpeg.sh FOLDER: a program that no one here wrote gets through its CUDA device and filters on the simulated driver
# in FOLDER. Frames that went to the device and back must be the frames that did not. Exits 77, skipped, without ffmpeg.
set -eu
command -v ffmpeg >/dev/null || exit 77
ffmpeg -hide_banner -filters 2>/dev/null | grep -q hwupload_cuda || exit 77

folder=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

frames() { # FILTERS: the frames' checksums, after these filters
    LD_LIBRARY_PATH=$folder ffmpeg -hide_banner -loglevel error -init_hw_device cuda=cu:0 -filter_hw_device cu \
        -f lavfi -i testsrc=size=320x240:rate=25 -frames:v 50 -vf "$1" -f framemd5 -
}

frames format=nv12 >"$scratch/plain"
frames format=nv12,hwupload_cuda,hwdownload,format=nv12 >"$scratch/device"
cmp "$scratch/plain" "$scratch/device"
[ "$(grep -vc '^#' "$scratch/device")" -eq 50 ]

# Filters whose kernels the simulated device does not know run all the same; what they would draw is not checked.
for filter in scale_cuda=160:120 yadif_cuda thumbnail_cuda; do
    ffmpeg -hide_banner -filters 2>/dev/null | grep -q " ${filter%%=*} " || continue
    frames "format=nv12,hwupload_cuda,$filter,hwdownload,format=nv12" >"$scratch/filtered" 2>"$scratch/errors"
    [ ! -s "$scratch/errors" ] && [ "$(grep -vc '^#' "$scratch/filtered")" -eq 50 ]
done
