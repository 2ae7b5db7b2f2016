import { useCallback, useState } from "react";
import { isRaster } from "../markdown/safe-url.ts";
import { type Attachment, BYTES_MAX, bytesOf, readAttachment } from "./attachment.ts";

/** The pictures to send with the next message. */
export interface Attachments {
  readonly items: readonly Attachment[];
  /** Why a file was not accepted. */
  readonly problem: string | null;
  readonly add: (files: readonly File[]) => void;
  readonly remove: (index: number) => void;
  readonly clear: () => void;
}

/** Keeps the pictures to send. */
export function useAttachments(): Attachments {
  const [items, setItems] = useState<readonly Attachment[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const add = useCallback((files: readonly File[]) => {
    setProblem(null);
    const take = async (): Promise<void> => {
      for (const file of files) {
        if (!isRaster(file.type)) {
          setProblem(`${file.name} is not a picture in a supported format.`);
          continue;
        }
        const attachment = await readAttachment(file);
        setItems((before) => {
          if (bytesOf([...before, attachment]) <= BYTES_MAX) return [...before, attachment];
          setProblem(`${file.name} is too large: the pictures of a message may have 11 MiB in total.`);
          return before;
        });
      }
    };
    take().catch((error: Error) => setProblem(error.message));
  }, []);
  const remove = useCallback((index: number) => setItems((before) => before.filter((_, at) => at !== index)), []);
  const clear = useCallback(() => setItems([]), []);
  return { items, problem, add, remove, clear };
}
