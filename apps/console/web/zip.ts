import { Zip, ZipDeflate } from 'fflate';

/** A piece of a file. Pieces of one file follow each other. */
export interface ZipPiece {
  file: string;
  text: string;
}

/** Yields a ZIP archive of files while they are created. Its size is not known before its end. */
export async function* zip(pieces: AsyncIterable<ZipPiece>): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  const archive = new Zip((error, chunk) => {
    if (error !== null) throw error;
    ready.push(chunk);
  });
  let open: ZipDeflate | undefined;
  for await (const { file, text } of pieces) {
    if (open?.filename !== file) {
      open?.push(new Uint8Array(), true);
      open = new ZipDeflate(file, { level: 6 });
      archive.add(open);
    }
    open.push(Buffer.from(text));
    yield* ready.splice(0);
  }
  open?.push(new Uint8Array(), true);
  archive.end();
  yield* ready.splice(0);
}
