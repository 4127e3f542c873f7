import { useEffect } from "react";
import { toast } from "sonner";
import { create } from "zustand";
import { attachedDrafts } from "./persistence";
import { isSound, soundOf } from "./sounds";

/** What larger pictures are scaled down to be below; the model itself sees far less. */
const LARGEST_BYTES = 20 * 1024 ** 2;
const LONGEST_SIDE = 4096;

const keyOf = (conversationId: string | null) => conversationId ?? "new";
const none: string[] = [];

/** Pictures and sounds in each composer; where none are noted, some may have been kept. */
const useStore = create<Record<string, string[]>>(() => ({}));

const attachedNow = (conversationId: string | null) => useStore.getState()[keyOf(conversationId)];

export function useAttached(conversationId: string | null): string[] {
  useEffect(() => void bringBack(conversationId), [conversationId]);
  return useStore((attached) => attached[keyOf(conversationId)] ?? none);
}

export function setAttached(conversationId: string | null, urls: string[]): void {
  useStore.setState({ [keyOf(conversationId)]: urls });
  attachedDrafts.write(conversationId, urls);
}

/** Takes them out of the composer. They are kept still, until `forgetTaken`. */
export function takeAttached(conversationId: string | null): void {
  useStore.setState({ [keyOf(conversationId)]: none });
}

/** What was taken is kept elsewhere; what was attached since then stays. */
export function forgetTaken(conversationId: string | null): void {
  attachedDrafts.write(conversationId, attachedNow(conversationId) ?? none);
}

/** What was in the composer when the page was closed. */
async function bringBack(conversationId: string | null): Promise<void> {
  if (attachedNow(conversationId)) return;
  const urls = await attachedDrafts.read(conversationId);
  if (!attachedNow(conversationId)) useStore.setState({ [keyOf(conversationId)]: urls });
}

/** Puts files into the composer, after those that are there; says which could not be read. */
export async function attach(conversationId: string | null, files: Iterable<File>): Promise<void> {
  for (const file of files) {
    try {
      const sound = soundOf(file);
      if (sound && file.size > LARGEST_BYTES) {
        toast.error(`${file.name} is larger than 20 MB, which a message can't hold.`);
        continue;
      }
      const url = await dataUrlOf(sound ?? (await withinBounds(file)));
      await bringBack(conversationId);
      const before = attachedNow(conversationId) ?? none;
      setAttached(conversationId, [...before, url]);
    } catch {
      toast.error(`${file.name} could not be read as ${isSound(file) ? "a sound" : "a picture"}.`);
    }
  }
}

function dataUrlOf(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** The file as it is, unless it is so large that sending it would fail. */
async function withinBounds(file: File): Promise<Blob> {
  if (file.size <= LARGEST_BYTES) return file;
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser has no canvas");
  // JPEG knows no transparency, which would turn black.
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const scaled = await new Promise<Blob | null>((resolve) =>
    canvas.toBlob(resolve, "image/jpeg", 0.92),
  );
  if (!scaled) throw new Error("the picture could not be written");
  toast(
    `${file.name} is larger than 20 MB: it was scaled down to ${canvas.width} × ${canvas.height}.`,
  );
  return scaled;
}
