import { useCallback, useRef, useState } from "react";
import { isRaster } from "../markdown/safe-url.ts";
import { useClient } from "../request/use-client.ts";
import { type PendingFile, uploadFile } from "./attachment.ts";

/** The files to send with the next message. */
export interface Attachments {
  readonly items: readonly PendingFile[];
  /** Whether a file is still being uploaded. */
  readonly busy: boolean;
  /** Why a file was not accepted. */
  readonly problem: string | null;
  readonly add: (files: readonly File[]) => void;
  readonly remove: (key: number) => void;
  readonly clear: () => void;
}

/** Uploads files to a session as they are added, and keeps their references until the message is sent. */
export function useAttachments(sessionId: string): Attachments {
  const client = useClient();
  const [items, setItems] = useState<readonly PendingFile[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const keys = useRef(0);
  const drop = useCallback((which: (file: PendingFile) => boolean) => {
    setItems((before) => {
      for (const { preview } of before.filter(which)) if (preview !== null) URL.revokeObjectURL(preview);
      return before.filter((file) => !which(file));
    });
  }, []);
  const add = useCallback(
    (files: readonly File[]) => {
      setProblem(null);
      const take = async (file: File): Promise<void> => {
        const key = ++keys.current;
        const change = (changed: Partial<PendingFile>): void =>
          setItems((before) => before.map((one) => (one.key === key ? { ...one, ...changed } : one)));
        const preview = isRaster(file.type) ? URL.createObjectURL(file) : null;
        setItems((before) => [...before, { key, name: file.name, preview, progress: 0, part: null }]);
        try {
          const part = await uploadFile(client, sessionId, file, (progress) => change({ progress }));
          change({ progress: 1, part });
        } catch (error) {
          drop((one) => one.key === key);
          setProblem(`${file.name}: ${(error as Error).message}`);
        }
      };
      const takeAll = async (): Promise<void> => {
        for (const file of files) await take(file);
      };
      void takeAll();
    },
    [client, sessionId, drop],
  );
  const remove = useCallback((key: number) => drop((file) => file.key === key), [drop]);
  const clear = useCallback(() => drop(() => true), [drop]);
  return { items, busy: items.some(({ part }) => part === null), problem, add, remove, clear };
}
