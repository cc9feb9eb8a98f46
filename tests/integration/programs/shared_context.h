/* SPDX-License-Identifier: Apache-2.0 */
__attribute__((visibility("default"))) void library_work(long n);
