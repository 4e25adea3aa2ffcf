#!/bin/sh
# Stands in for an external agent: reads its task at its terminal, takes its time, and waits for the next.
printf 'task> '
while read -r task; do
    echo "I look at what was repaired."
    for second in 1 2 3 4 5 6 7 8; do
        sleep 1
        echo "$second of 8 parts are noted."
    done
    {
        echo "# Repairs"
        echo "- the total counts every piece"
        echo "- change is given to the last cent"
    } > NOTES.md
    printf 'task> '
done
