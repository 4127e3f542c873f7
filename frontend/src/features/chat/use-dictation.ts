import { useState } from "react";
import { toast } from "sonner";
import { errorOfResponse, toApiError } from "@/api/errors";
import { useStatus } from "@/api/models";

type Dictation = {
  /** Who writes down what is said; null where no such model is loaded. */
  name: string | null;
  isWriting: boolean;
  write: (sound: File) => Promise<void>;
};

/** What is said becomes words, by a model for transcription that is loaded beside the others. */
export function useDictation(onText: (text: string) => void): Dictation {
  const [isWriting, setWriting] = useState(false);
  const engine = useStatus().data?.engines.findLast(
    ({ task, loaded }) => task === "transcription" && loaded !== null,
  );
  const write = async (sound: File) => {
    if (!engine) return;
    setWriting(true);
    try {
      const text = await transcriptOf(engine.model, sound);
      if (text) onText(text);
      else toast("Nothing was heard.");
    } catch (thrown) {
      toast.error(toApiError(thrown).message);
    } finally {
      setWriting(false);
    }
  };
  return { name: engine?.display_name ?? null, isWriting, write };
}

async function transcriptOf(model: string, sound: File): Promise<string> {
  const body = new FormData();
  body.set("model", model);
  body.set("file", sound);
  const url = new URL("/v1/audio/transcriptions", window.location.origin);
  const response = await fetch(url, { method: "POST", body });
  if (!response.ok) throw await errorOfResponse(response);
  const { text } = (await response.json()) as { text: string };
  return text.trim();
}
