#!/bin/sh
# Compares what the till prints with what is right. Exits with 1 if anything is wrong.

failed=0

check() {
    name=$1
    right=$2
    shift 2
    printed=$(sh till.sh "$@")
    if [ "$printed" = "$right" ]; then
        echo "ok      $name"
    else
        echo "FAILED  $name: \`till.sh $*\` prints \"$printed\" instead of \"$right\""
        failed=1
    fi
}

check every_piece_is_paid 590 total 320 1 45 6
check change_for_a_large_amount "200 50 1" change 251
check change_is_given_to_the_last_cent "100 50 20 10 5 2 1" change 188
exit "$failed"
