/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_USDT_GPU_CONTROL_H
#define WAFFLE_USDT_GPU_CONTROL_H
void gpu_control_start(void);
#endif
