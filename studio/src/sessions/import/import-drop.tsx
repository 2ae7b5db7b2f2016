import { type ReactNode, useEffect } from "react";
import { droppedFiles } from "./dropped-files.ts";
import { useImport } from "./use-import.ts";

/** Imports files and folders dropped anywhere on the page, and shows the result. */
export function ImportDrop(): ReactNode {
  const { run, busy, found, error } = useImport();
  useEffect(() => {
    const isFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    // Without this, the browser would open the file.
    const over = (event: DragEvent) => {
      if (isFiles(event)) event.preventDefault();
    };
    const drop = async (event: DragEvent) => {
      if (!isFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      const files = await droppedFiles(event.dataTransfer);
      if (files.length > 0) await run(files);
    };
    const dropped = (event: DragEvent) => void drop(event);
    window.addEventListener("dragover", over);
    window.addEventListener("drop", dropped);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", dropped);
    };
  }, [run]);
  return (
    <p role="status" className="small soft">
      {busy ? "Importing what was dropped…" : (error?.message ?? found)}
    </p>
  );
}
