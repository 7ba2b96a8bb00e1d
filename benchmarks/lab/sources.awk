# SPDX-License-Identifier: MIT
# awk -v files=N -v functions=N -f sources.awk: C files in the current folder, and a makefile for them.
BEGIN {
	for (f = 1; f <= files; f++) {
		name = "part" f ".c"
		objects = objects " part" f ".o"
		for (i = 1; i <= functions; i++) {
			printf "int f%d_%d(const int *p, int n)\n{\n\tint s = %d;\n", f, i, i > name
			printf "\tfor (int i = 0; i < n; i++)\n" > name
			printf "\t\ts = s %s p[i] * (i + %d);\n", i % 2 ? "+" : "^", f + i > name
			printf "\treturn s;\n}\n" > name
		}
		close(name)
	}
	printf "all:%s\n%%.o: %%.c\n\tgcc -O1 -c $< -o $@\n", objects > "Makefile"
}
