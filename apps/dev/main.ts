import { enableCompileCache } from 'node:module';
import { compiledCode } from './compiled-code.ts';

/**
 * `npm start`: loads the program from compiled code, which takes half the processor time of loading
 * its sources.
 */
enableCompileCache(compiledCode.NODE_COMPILE_CACHE);
await import('./start.ts');
