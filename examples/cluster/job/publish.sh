#!/bin/sh
# Stands in for what must happen once, and only if a person says yes.
echo "published by $(hostname)" >> published.txt
