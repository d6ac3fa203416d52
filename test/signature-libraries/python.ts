/** Prepares the Python receiver, with the libraries of python/requirements.txt. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment } from '#test/python-environment.ts';
import { getFolder } from './folder.ts';
import type { ReceiverProgram } from './guarantees.ts';

const folder = getFolder('python');

export async function preparePython(): Promise<ReceiverProgram> {
  const requirements = path.join(folder, 'requirements.txt');
  const home = await pythonEnvironment({
    name: 'receivers-python',
    version: readFileSync(requirements, 'utf8'),
    install: ['--requirement', requirements],
    program: 'python',
    remedy:
      'install Python 3.10 or newer with its venv module (Debian, Ubuntu: apt-get install ' +
      'python3-venv), and check the network and the Python package index',
  });
  const python = path.join(home, 'bin', 'python');
  return {
    check: [python, path.join(folder, 'check.py')],
    serve: [python, path.join(folder, 'receiver.py')],
  };
}
