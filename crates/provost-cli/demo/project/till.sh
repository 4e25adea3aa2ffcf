#!/bin/sh
# A shop's till, in cents.
#
#   sh till.sh total PRICE QUANTITY [PRICE QUANTITY]...    what a purchase comes to
#   sh till.sh change CENTS                                the fewest coins that make up an amount

total() {
    sum=0
    while [ $# -gt 0 ]; do
        sum=$((sum + $1))
        shift 2
    done
    echo "$sum"
}

change() {
    left=$1
    coins=
    for coin in 200 100 50 20 10 5 2 1; do
        while [ "$left" -gt "$coin" ]; do
            coins="$coins${coins:+ }$coin"
            left=$((left - coin))
        done
    done
    echo "$coins"
}

"$@"
