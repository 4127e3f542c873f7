import type { Schemas } from "@/api/client";

/** What a model is for, where that isn't chat. */
export function purposeOf(task: Schemas["ModelCard"]["task"]): string | null {
  switch (task) {
    case "embedding":
      return "for embeddings";
    case "rerank":
      return "ranks documents";
    case "speech":
      return "speaks";
    case "transcription":
      return "writes down speech";
    default:
      return null;
  }
}
