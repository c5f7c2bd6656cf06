/*
 * Runs every file of the named directories through a fuzz target: in builds without libFuzzer, so that what a fuzzer once found stays found
 * with every compiler and sanitizer.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;
	int result = -1;

	if (!file)
		return -1;
	/* A block of exactly the file's size, so that a sanitizer sees a read beyond it. */
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0 &&
	    (data = malloc(size ? (size_t)size : 1)) != NULL && fread(data, 1, (size_t)size, file) == (size_t)size) {
		LLVMFuzzerTestOneInput(data, (size_t)size);
		result = 0;
	}
	free(data);
	fclose(file);
	return result;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		const struct dirent *entry;
		char path[4096];

		while (directory && (entry = readdir(directory)) != NULL) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (replay_file(path) < 0) {
				fprintf(stderr, "cannot read %s\n", path);
				return 1;
			}
			count++;
		}
		if (directory)
			closedir(directory);
	}
	printf("%d inputs\n", count);
	return count > 0 ? 0 : 1;
}
