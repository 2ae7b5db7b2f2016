/** The maximum number of files of one drop, as a folder may hold any number. */
const FILES_MAX = 1000;

/** The dropped files that may be sessions, including those in folders. */
export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  // The items are only available synchronously, so all are requested before the first await.
  const items = [...transfer.items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const files: File[] = [];
  for (const item of items) {
    if (item instanceof File) files.push(item);
    else if (item !== null) await gather(item, files);
  }
  return files;
}

async function gather(entry: FileSystemEntry, files: File[]): Promise<void> {
  if (files.length >= FILES_MAX) return;
  if (entry.isFile) {
    if (/\.jsonl?$/.test(entry.name)) files.push(await fileOf(entry as FileSystemFileEntry));
    return;
  }
  for (const inside of await listed(entry as FileSystemDirectoryEntry)) await gather(inside, files);
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** All entries of a folder; browsers return them in batches. */
async function listed(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}
