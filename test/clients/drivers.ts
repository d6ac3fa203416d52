import type { Driver } from './driver.ts';
import { pythonDrivers } from './python-driver.ts';
import { typescriptDriver } from './typescript-driver.ts';

/** The clients, in each language. */
export const drivers: readonly Driver[] = [typescriptDriver, ...pythonDrivers];
