import { enableCompileCache } from 'node:module';
import { compiledCode } from './compiled-code.ts';

/** `npm start`: loads the program from compiled code, in half the processor time. */
enableCompileCache(compiledCode.NODE_COMPILE_CACHE);
await import('./start.ts');
