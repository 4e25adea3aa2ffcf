#!/bin/sh
# Greets whoever runs it.
echo "Hello, $(id -un)"
