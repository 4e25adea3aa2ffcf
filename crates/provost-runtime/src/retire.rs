//! Models that their providers no longer offer, or soon won't.

use jiff::civil::Date;
use provost_llm::ModelFacts;

/// Days before a model retires from which the user is told.
const NOTICE_DAYS: i64 = 30;

/// The note on a model that has retired by `today`, or does within 30 days; `None` for any other.
pub(crate) fn retirement(name: &str, facts: &ModelFacts, today: Date) -> Option<String> {
    let retires = facts.retires.as_ref()?.parse::<Date>().ok()?;
    let days = today.until(retires).ok()?.get_days();
    let instead = facts.successor.as_ref().map(|model| format!("; use {model} instead")).unwrap_or_default();
    match i64::from(days) {
        ..=0 => Some(format!("the model {name} was retired on {retires}{instead}")),
        1 => Some(format!("the model {name} retires tomorrow{instead}")),
        days if days <= NOTICE_DAYS => {
            Some(format!("the model {name} retires on {retires}, in {days} days{instead}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use provost_llm::ModelFacts;

    use super::retirement;

    #[test]
    fn a_model_is_said_to_retire_thirty_days_before_and_from_then_on() {
        let facts = ModelFacts {
            retires: Some("2026-11-30".to_owned()),
            successor: Some("a/newer".to_owned()),
            ..ModelFacts::default()
        };
        let said = |day: &str| retirement("a/model", &facts, day.parse().unwrap());
        assert_eq!(said("2026-10-30"), None);
        assert_eq!(
            said("2026-10-31").unwrap(),
            "the model a/model retires on 2026-11-30, in 30 days; use a/newer instead"
        );
        assert_eq!(said("2026-11-29").unwrap(), "the model a/model retires tomorrow; use a/newer instead");
        for day in ["2026-11-30", "2027-04-01"] {
            assert_eq!(
                said(day).unwrap(),
                "the model a/model was retired on 2026-11-30; use a/newer instead"
            );
        }
        assert_eq!(retirement("a/model", &ModelFacts::default(), "2026-11-30".parse().unwrap()), None);
    }
}
