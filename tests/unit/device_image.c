// SPDX-License-Identifier: BSD-3-Clause
/* What is embedded as device code: a fat binary of bounded size, or without nvcc the head of an empty one. */
#include <stdio.h>
#include <string.h>

extern const unsigned char hoop_device_image[];
extern const unsigned char hoop_device_image_is_code;

enum { MOST_KIB = 384 };

int main(void)
{
    static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba};
    unsigned long long bytes;

    if (memcmp(hoop_device_image, magic, sizeof magic) != 0) {
        printf("the image is no fat binary\n");
        return 1;
    }
    if (!hoop_device_image_is_code) {
        printf("built without nvcc: the image is empty\n");
        return 0;
    }
    memcpy(&bytes, hoop_device_image + 8, sizeof bytes);
    printf("device code of %llu bytes\n", bytes);
    if (bytes < 1024 || bytes > MOST_KIB * 1024) {
        printf("it must be between 1 and %d KiB: is there a loop without an unroll pragma?\n", MOST_KIB);
        return 1;
    }
    return 0;
}
