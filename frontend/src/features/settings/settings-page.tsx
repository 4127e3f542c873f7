import { PageHeader } from "@/ui/page-header";
import { AboutSection } from "./about-section";
import { ApiSection } from "./api-section";
import { AppearanceSection } from "./appearance-section";
import { FoldersSection } from "./folders-section";
import { StartSection } from "./start-section";

export function SettingsPage() {
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl space-y-8 px-4 py-8 md:px-8">
        <PageHeader title="Settings" description="Kept on this machine, like everything else." />
        <AppearanceSection />
        <FoldersSection />
        <StartSection />
        <ApiSection />
        <AboutSection />
      </div>
    </div>
  );
}
