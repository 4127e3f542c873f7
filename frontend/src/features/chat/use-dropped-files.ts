import { useEffect, useRef } from "react";

/** Takes files that are dropped anywhere on the page: a browser would leave the page for them. */
export function useDroppedFiles(onFiles: (files: File[]) => void): void {
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const bringsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files");
    const onDragOver = (event: DragEvent) => {
      if (bringsFiles(event)) event.preventDefault();
    };
    const onDrop = (event: DragEvent) => {
      if (!bringsFiles(event)) return;
      event.preventDefault();
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", onDragOver);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDragOver);
      removeEventListener("drop", onDrop);
    };
  }, []);
}
