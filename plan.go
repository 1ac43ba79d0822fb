package animalstore

// Plan determines the limits of a key.
type Plan string

const (
	PlanFree       Plan = "free"
	PlanPro        Plan = "pro"
	PlanBusiness   Plan = "business"
	PlanEnterprise Plan = "enterprise"
)

// Plans are all plans, smallest first.
var Plans = []Plan{PlanFree, PlanPro, PlanBusiness, PlanEnterprise}

// Limits are the numbers of requests that a key may send.
type Limits struct {
	PerMinute int64 `json:"perMinute"`
	PerDay    int64 `json:"perDay"`
}

// planLimits has no row for enterprise, whose limits are set on each key.
var planLimits = map[Plan]Limits{
	PlanFree:     {PerMinute: 60, PerDay: 1_000},
	PlanPro:      {PerMinute: 300, PerDay: 10_000},
	PlanBusiness: {PerMinute: 1_000, PerDay: 100_000},
}

// LimitsFor returns the limits of a key on plan p. Enterprise needs both custom
// limits; no other plan may have any.
func (p Plan) LimitsFor(custom Limits) (Limits, error) {
	if p == PlanEnterprise {
		if custom.PerMinute <= 0 || custom.PerDay <= 0 {
			return Limits{}, Errorf(ValidationFailed, "plan enterprise needs its own limits: give both a per-minute and a per-day limit, positive integers")
		}
		return custom, nil
	}
	fixed, ok := planLimits[p]
	if !ok {
		return Limits{}, Errorf(ValidationFailed, "plan %s", MustBeOneOf(Plans))
	}
	if custom != (Limits{}) {
		return Limits{}, Errorf(ValidationFailed, "this plan has fixed limits (%d a minute, %d a day): only enterprise can have its own", fixed.PerMinute, fixed.PerDay)
	}
	return fixed, nil
}
