//! The rules for agents of sub-folders: each file is told once, when the agent first works in its folder, and again
//! after a summary that it was part of.

use std::collections::BTreeMap;

use provost_event::{Compacted, CompactionKind, ItemKind, Origin, QuotedRules, Seq, SystemItem};
use serde::{Deserialize, Serialize};

use super::Deciding;
use crate::RulesSought;
use crate::event::FolderRules;

/// The files whose rules the agent's view has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderRulesTold {
    /// Each with the entry that quotes it, and its bytes there.
    told: BTreeMap<String, (Seq, u64)>,
}

impl FolderRulesTold {
    /// The entry `head` quotes these files.
    pub(super) fn told(&mut self, rules: &[QuotedRules], head: Seq) {
        self.told.extend(rules.iter().map(|rules| (rules.file.clone(), (head, rules.bytes))));
    }

    /// What a summary stands for is no longer in the agent's view.
    pub(super) fn compacted(&mut self, compacted: &Compacted) {
        if compacted.how != CompactionKind::Trim {
            self.told.retain(|_, (at, _)| *at > compacted.through);
        }
    }

    /// What is still to be told, of at most `bytes_max` in all; `None` if there is no room for more.
    pub(super) fn sought(&self, bytes_max: u64) -> Option<RulesSought> {
        let told = self.told.values().map(|(_, bytes)| bytes).sum::<u64>();
        let bytes_max = bytes_max.checked_sub(told).filter(|left| *left > 0)?;
        Some(RulesSought { known: self.told.keys().cloned().collect(), bytes_max })
    }
}

/// A call worked in folders with rules of their own.
pub(super) fn found(deciding: &mut Deciding<'_>, found: Vec<FolderRules>) {
    for rules in found {
        let bytes_max = deciding.state.assignment.policy().map_or(0, |policy| policy.folder_rules_bytes);
        let sought = deciding.state.folder_rules.sought(bytes_max);
        // A call at the same time may have found it, too.
        let is_news = sought
            .is_some_and(|sought| !sought.known.contains(&rules.file) && rules.bytes <= sought.bytes_max);
        if is_news {
            let quoted = QuotedRules { file: rules.file, bytes: rules.bytes };
            deciding.commit(SystemItem {
                item: ItemKind::FolderRules,
                body: rules.body,
                origin: Origin::Engine,
                rules: vec![quoted],
            });
        }
    }
}
