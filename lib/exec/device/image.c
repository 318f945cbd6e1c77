// SPDX-License-Identifier: BSD-3-Clause
/* The device code in the library: the fat binary that nvcc made of interp.cu, or, where there is no nvcc, a few bytes that every driver
 * refuses. make runs compilers in the top folder of the build, so the path is relative to that. */
extern const unsigned char hoop_device_image[];
extern const unsigned char hoop_device_image_end[];
extern const unsigned char hoop_device_image_is_code;
extern const int hoop_device_image_toolkit, hoop_device_image_oldest;

#ifdef HOOP_DEVICE_CODE
__asm__(".pushsection .rodata, \"a\"\n"
        ".balign 64\n"
        ".globl hoop_device_image, hoop_device_image_end\n"
        ".hidden hoop_device_image, hoop_device_image_end\n"
        "hoop_device_image:\n"
        ".incbin \"lib/exec/device/kernels.fatbin\"\n"
        "hoop_device_image_end:\n"
        ".byte 0\n"
        ".popsection\n");
const unsigned char hoop_device_image_is_code = 1;
const int hoop_device_image_toolkit = HOOP_DEVICE_TOOLKIT, hoop_device_image_oldest = HOOP_DEVICE_OLDEST;
#else
/* The head of a fat binary without anything in it. */
const unsigned char hoop_device_image[64] __attribute__((aligned(64))) = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
const unsigned char hoop_device_image_is_code = 0;
const int hoop_device_image_toolkit = 0, hoop_device_image_oldest = 0;
#endif
